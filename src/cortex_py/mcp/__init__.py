"""The protocol surface: tools and resources over the library, on stdio and HTTP. Nothing here decides anything."""
