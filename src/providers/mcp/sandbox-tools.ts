/** Describes the tools of the built-in MCP server. */

export const MAX_NOTE_CHARACTERS = 2_000
export const MAX_WAIT_SECONDS = 60

const schema = (properties: Record<string, Record<string, string | number>>, required: string[] = []) => ({
  type: 'object' as const,
  properties,
  required,
})
const READ_ONLY = { readOnlyHint: true, openWorldHint: false }

/** They change with the gateway only. */
export const SANDBOX_TOOLS = [
  {
    name: 'clock',
    title: 'Clock',
    description: 'The current time, in UTC or in a time zone such as Europe/Berlin.',
    inputSchema: schema({ time_zone: { type: 'string' } }),
    annotations: READ_ONLY,
  },
  {
    name: 'calculator',
    title: 'Calculator',
    description: 'Calculates an expression of numbers, + - * / % ^ and parentheses.',
    inputSchema: schema({ expression: { type: 'string' } }, ['expression']),
    outputSchema: schema({ result: { type: 'number' } }, ['result']),
    annotations: READ_ONLY,
  },
  {
    name: 'wait',
    title: 'Wait',
    description: 'Waits, and reports its progress ten times.',
    inputSchema: schema({ seconds: { type: 'number', minimum: 0, maximum: MAX_WAIT_SECONDS } }, ['seconds']),
    annotations: READ_ONLY,
  },
  {
    name: 'add_note',
    title: 'Add a note',
    description: 'Keeps a text until the gateway stops. Only the same token reads it.',
    inputSchema: schema({ text: { type: 'string', maxLength: MAX_NOTE_CHARACTERS } }, ['text']),
  },
  {
    name: 'list_notes',
    title: 'List notes',
    description: 'The notes of this token, the oldest first.',
    inputSchema: schema({}),
    annotations: READ_ONLY,
  },
]
