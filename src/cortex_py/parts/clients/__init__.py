"""The programs that use Cortex through MCP, and how they are configured."""
