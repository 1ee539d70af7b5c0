"""What the parts of assay hand each other: tables, documents, chat, JSON text."""
