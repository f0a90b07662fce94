/** The member of `_meta` that says to the built-in MCP server whose notes are read and written; a client cannot set it. */
export const OWNER = 'gatehouse/owner'
