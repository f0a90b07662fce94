/** `gatehouse mcp`: lists the tools of MCP servers and approves them as they are now; lists people and disconnects them. */
import { commandOf, OPTIONS_HELP, type Work } from '../accounts.ts'
import { headedTable } from '../table.ts'
import { json } from '../terminal.ts'

const HELP = `Usage: gatehouse mcp <list | approve | people | disconnect> [options]

Works on a running gateway (--url), or on its store. A tool of an MCP server is used only as it was approved: one
whose description or schemas have changed is off until it is approved again.

Commands:
  list                      show the tools that were seen, and what has changed since they were approved; of a running
                            gateway, how programs are confined
  approve <server>[/tool]   approve a tool, or all tools of the server, as they are now
  people                    show who has connected an account of their own to a server
  disconnect <connection>   end the connection of a person, by its id in the list of people

Options:
${OPTIONS_HELP}

Examples:
  gatehouse mcp list
  gatehouse mcp approve github/search
`

type Tool = {
  server: string
  tool: string
  state: 'approved' | 'pending' | 'changed'
  hash: string
  description: string
  changes: { member: string; before: unknown; after: unknown }[]
  approved_by: string | null
}

type Server = { server: string; sandbox: string | null }

export const run = commandOf('mcp', HELP, {
  list: { run: list },
  approve: { positionals: ['the name of a server, or server/tool'], run: approve },
  people: { run: people },
  disconnect: { positionals: ['the id of a connection'], run: disconnect },
})

const toolsOf = async ({ api }: Work): Promise<Tool[]> => (await api.all('/mcp/tools')) as Tool[]

async function list(work: Work) {
  const tools = await toolsOf(work)
  const servers = work.store ? [] : ((await work.api.all('/mcp/servers')) as Server[])
  const programs = servers.flatMap(({ server, sandbox }) => (sandbox === null ? [] : [[server, sandbox]]))
  const confined = () => `\n${headedTable(['PROGRAM', 'SANDBOX'], programs, work.terminal)}`
  return {
    data: { tools, ...(!work.store && { servers }) },
    text: () => `${textOf(tools, work)}${programs.length > 0 ? confined() : ''}`,
  }
}

function textOf(tools: readonly Tool[], { terminal }: Work): string {
  if (tools.length === 0) return 'No tool was seen yet: a server is asked when a client first uses /mcp.\n'
  const rows = tools.map(({ server, tool, state, approved_by }) => [server, clean(tool), state, approved_by ?? '-'])
  const differences = tools.map(differenceOf).join('')
  return `${headedTable(['SERVER', 'TOOL', 'STATE', 'APPROVED BY'], rows, terminal)}${differences}`
}

/** What a server sends is shown without control characters, which a terminal would obey. */
const clean = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}]/gu, '?')
const shown = (value: unknown): string => clean(JSON.stringify(value) ?? 'null')

function differenceOf({ server, tool, changes }: Tool): string {
  if (changes.length === 0) return ''
  const lines = changes.flatMap(({ member, before, after }) => [
    `  ${member}`,
    `  - ${shown(before)}`,
    `  + ${shown(after)}`,
  ])
  return `\n${server}/${clean(tool)} has changed since it was approved:\n${lines.join('\n')}\n`
}

async function approve(work: Work): Promise<number> {
  const { given, terminal, api } = work
  const [server = '', name] = (given.positionals[0] ?? '').split(/\/(.*)/s)
  const found = (await toolsOf(work)).filter(
    (tool) => (tool.server === server || tool.server.startsWith(`${server}:`)) && (name ?? tool.tool) === tool.tool,
  )
  if (found.length === 0) {
    const what =
      name === undefined
        ? `No tool of ${JSON.stringify(server)}`
        : `No tool ${JSON.stringify(name)} of ${JSON.stringify(server)}`
    throw new Error(`${what} was seen. See: gatehouse mcp list`)
  }
  const open = found.filter(({ state }) => state !== 'approved')
  const approved: unknown[] = []
  for (const tool of open) {
    const body = { server: tool.server, tool: tool.tool, hash: tool.hash }
    approved.push((await api.call('/mcp/tools/approve', { method: 'POST', body })).body)
    if (!given.has('json')) terminal.out(`${differenceOf(tool)}${tool.server}/${clean(tool.tool)} is approved.\n`)
  }
  if (given.has('json')) terminal.out(json({ approved }))
  else if (open.length === 0) terminal.out('Everything is approved as it is.\n')
  return 0
}

type Person = Record<'connection_id' | 'server' | 'subject' | 'state', string> &
  Record<'connected_at' | 'last_used_at', number | null>

async function people({ terminal, api }: Work) {
  const found = (await api.all('/mcp/people')) as Person[]
  const time = (seconds: number | null) => (seconds === null ? '-' : new Date(seconds * 1000).toISOString())
  const rows = found.map(({ connection_id, server, subject, state, connected_at, last_used_at }) => [
    ...[connection_id, server, clean(subject), state],
    ...[connected_at, last_used_at].map(time),
  ])
  const text = () => headedTable(['CONNECTION', 'SERVER', 'SUBJECT', 'STATE', 'SINCE', 'LAST USED'], rows, terminal)
  return { data: { people: found }, text: rows.length === 0 ? () => 'Nobody has connected an account.\n' : text }
}

async function disconnect({ given, api }: Work) {
  const id = given.positionals[0] ?? ''
  const { body } = await api.call(`/mcp/people/${encodeURIComponent(id)}`, { method: 'DELETE' })
  const { revoked } = body as { revoked: boolean }
  const how = revoked ? 'its tokens are revoked' : 'its tokens are deleted here; they were not revoked'
  return { data: { revoked }, text: () => `${clean(id)} has ended: ${how}.\n` }
}
