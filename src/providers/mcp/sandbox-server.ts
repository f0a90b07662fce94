/** The built-in MCP server: a clock, a calculator and notes, so that the first call works without a key. */
import { Server } from '@modelcontextprotocol/server'
import { type Clock, pause } from '../../kit/clock.ts'
import { isRecord } from '../../kit/json.ts'
import { calculate } from './calculate.ts'
import { OWNER } from './owner.ts'
import { MAX_NOTE_CHARACTERS, MAX_WAIT_SECONDS, SANDBOX_TOOLS } from './sandbox-tools.ts'

const MAX_NOTES = 100
const MAX_OWNERS = 1_000

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })
const failure = (value: string) => ({ ...text(value), isError: true })
type Arguments = Record<string, unknown>
type Running = { owner: string; signal: AbortSignal; report(progress: number): Promise<void> }

export function createSandboxServer({ clock }: { clock: Clock }): Server {
  const server = new Server(
    { name: 'sandbox', title: 'Sandbox', version: '1.0.0' },
    {
      capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} },
      instructions: 'A clock, a calculator and notes, to try MCP without a key.',
    },
  )
  const notes = new Map<string, string[]>()
  const notesOf = (owner: string) => notes.get(owner) ?? []
  const ownerOf = (meta: unknown) => (isRecord(meta) && typeof meta[OWNER] === 'string' ? meta[OWNER] : '')

  function addNote(owner: string, note: unknown) {
    if (typeof note !== 'string' || note.length > MAX_NOTE_CHARACTERS) {
      return failure(`"text" must be a text of at most ${MAX_NOTE_CHARACTERS} characters.`)
    }
    const own = notesOf(owner)
    const [oldest] = notes.keys()
    if (!notes.has(owner) && notes.size >= MAX_OWNERS && oldest !== undefined) notes.delete(oldest)
    notes.set(owner, [...own, note].slice(-MAX_NOTES))
    return text(`Note ${notesOf(owner).length} is kept.`)
  }

  async function wait(given: unknown, { signal, report }: Running) {
    const seconds = Number(given)
    if (!(seconds >= 0 && seconds <= MAX_WAIT_SECONDS)) {
      return failure(`"seconds" must be a number from 0 to ${MAX_WAIT_SECONDS}.`)
    }
    for (let step = 1; step <= 10; step++) {
      await pause(clock, seconds * 100, signal)
      signal.throwIfAborted()
      await report(step / 10)
    }
    return text(`Waited ${seconds} s.`)
  }

  function time(zone: unknown) {
    const now = new Date(clock.now())
    if (zone === undefined) return text(now.toISOString())
    try {
      return text(`${now.toLocaleString('sv-SE', { timeZone: String(zone) })} ${zone}`)
    } catch {
      return failure(`${JSON.stringify(zone)} is no time zone; one is Europe/Berlin.`)
    }
  }

  function calculated(expression: unknown) {
    try {
      const result = calculate(String(expression ?? ''))
      return { ...text(String(result)), structuredContent: { result } }
    } catch (thrown) {
      return failure((thrown as Error).message)
    }
  }

  function call(name: string, given: Arguments, running: Running) {
    if (name === 'clock') return time(given.time_zone)
    if (name === 'calculator') return calculated(given.expression)
    if (name === 'wait') return wait(given.seconds, running)
    if (name === 'add_note') return addNote(running.owner, given.text)
    if (name === 'list_notes') return text(notesOf(running.owner).join('\n') || 'There is no note.')
    return failure(`There is no tool "${name}".`)
  }

  server.setRequestHandler('tools/list', () => ({ tools: SANDBOX_TOOLS }))
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken
    return await call(params.name, params.arguments ?? {}, {
      owner: ownerOf(mcpReq._meta),
      signal: mcpReq.signal,
      async report(progress) {
        if (progressToken === undefined) return
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 1 } })
      },
    })
  })
  server.setRequestHandler('resources/list', () => ({
    resources: [{ uri: 'notes:all', name: 'notes', title: 'Notes', mimeType: 'text/plain' }],
  }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }))
  server.setRequestHandler('resources/read', ({ params }, { mcpReq }) => ({
    contents: [{ uri: params.uri, mimeType: 'text/plain', text: notesOf(ownerOf(mcpReq._meta)).join('\n') }],
  }))
  server.setRequestHandler('prompts/list', () => ({
    prompts: [
      {
        name: 'time_in',
        title: 'Time in a city',
        description: 'Asks for the time in a time zone.',
        arguments: [{ name: 'time_zone', required: true }],
      },
    ],
  }))
  server.setRequestHandler('prompts/get', ({ params }) => ({
    messages: [
      {
        role: 'user' as const,
        content: { type: 'text' as const, text: `What time is it in ${params.arguments?.time_zone ?? 'UTC'}?` },
      },
    ],
  }))
  server.setRequestHandler('completion/complete', ({ params }) => ({
    completion: { values: ZONES.filter((zone) => zone.toLowerCase().includes(params.argument.value.toLowerCase())) },
  }))
  return server
}

const ZONES = ['UTC', 'Europe/Berlin', 'Europe/London', 'America/New_York', 'Asia/Tokyo']
