"""How people and programs reach Cortex: MCP, HTTP, the command line, the page. They parse, call and shape."""
