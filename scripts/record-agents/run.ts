/** Runs one coding agent against a provider on loopback that answers by a script, and returns the requests it sent. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { VendorRequest } from '../../test/kit/vendor.ts'
import type { ReceivedRequest, ScriptedResponse } from '../../test/matrix/model-script.ts'
import { startWireVendor, type Wire } from '../../test/matrix/vendors/wire-vendor.ts'
import { type Agent, QUESTION, type ScriptedCall } from './agents.ts'

/** An agent that has not finished by then does not work with this recorder. */
const LIMIT_MS = 180_000
/** Nothing listens there: what an agent sends to any other host than loopback goes nowhere. */
const NOWHERE = 'http://127.0.0.1:9'
const THOUGHT = 'I look at it.'
const ANSWER = 'The file main.ts prints the number of the day.'
const PROGRAM = 'console.log(new Date().getDate())'
/** Phrases in the requests that are ours or the operating system's: they stay as they are. */
export const OURS = [QUESTION, THOUGHT, ANSWER, PROGRAM, 'main.ts', 'missing.ts', 'No such file or directory']

export type Run = { requests: VendorRequest[]; output: string; project: string; home: string }

/** `packages` is the node_modules directory that the agent is installed in; `directory` is empty. */
export async function runAgent(agent: Agent, packages: string, directory: string): Promise<Run> {
  const home = join(directory, 'home')
  const project = join(directory, 'project')
  mkdirSync(home, { recursive: true })
  mkdirSync(project)
  writeFileSync(join(project, 'main.ts'), `${PROGRAM}\n`)
  const steps = agent.script(project)
  const vendor = startWireVendor(recordingWire(agent.wire), { respond: thinkBy(steps) })
  try {
    const { command, environment } = agent.launch({ packages, home, project, origin: vendor.origin })
    const child = Bun.spawn(command, {
      cwd: project,
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
      timeout: LIMIT_MS,
      env: { ...bareEnvironment(home), ...environment },
    })
    const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    await child.exited
    return { requests: [...vendor.requests], output: `${out}\n${err}\nexit code ${child.exitCode}`, project, home }
  } finally {
    await vendor.stop()
  }
}

/** Nothing of the caller's environment but the path to its programs: no keys, no settings of other tools. */
function bareEnvironment(home: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    HOME: home,
    TMPDIR: home,
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    NO_COLOR: '1',
    HTTP_PROXY: NOWHERE,
    HTTPS_PROXY: NOWHERE,
    ALL_PROXY: NOWHERE,
    http_proxy: NOWHERE,
    https_proxy: NOWHERE,
    all_proxy: NOWHERE,
    NO_PROXY: '127.0.0.1,localhost',
    no_proxy: '127.0.0.1,localhost',
  }
}

/** Refuses nothing, so that everything is recorded, and gives each response an id of its own. */
function recordingWire(wire: Wire): Wire {
  let count = 0
  const withOwnId = (event: object | string): object | string => {
    const text = typeof event === 'string' ? event : JSON.stringify(event)
    const own = text.replaceAll(/"(msg|resp|rs|chatcmpl)[_-]v"/g, `"$1_${count}"`)
    return typeof event === 'string' ? own : (JSON.parse(own) as object)
  }
  return {
    ...wire,
    decode: toolsOnly,
    events(...args) {
      count++
      return wire.events(...args).map(withOwnId)
    },
  }
}

type NamedTool = {
  name?: string
  function?: { name: string }
  functionDeclarations?: NamedTool[]
  /** Tools of a namespace, or of an item of the conversation. */
  tools?: NamedTool[]
}

const namesOf = ({ name, function: fn, functionDeclarations = [], tools = [] }: NamedTool): string[] => [
  ...[name ?? fn?.name ?? []].flat(),
  ...[...functionDeclarations, ...tools].flatMap(namesOf),
]

/** A request as the script needs it: the names of its tools. */
function toolsOnly(body: Record<string, unknown>): ReceivedRequest {
  const { tools = [], input = [] } = body as { tools?: NamedTool[]; input?: NamedTool[] }
  return {
    system: '',
    question: '',
    pictures: [],
    results: [],
    turns: 0,
    history: [],
    tools: namesOf({ tools: [...tools, ...input] }).map((name) => ({ name, description: '', parameters: {} })),
    demanded: undefined,
    schema: undefined,
    is_thinking: false,
    max_tokens: undefined,
    stops: [],
  }
}

/** Each request that offers the tools of the script gets its next answer; others (titles, checks) get a short text. */
function thinkBy(steps: ScriptedCall[][]): (heard: ReceivedRequest) => ScriptedResponse {
  let at = 0
  const names = new Set(steps.flat().map(({ name }) => name))
  return ({ tools }) => {
    const isLoop = [...names].every((name) => tools.some((tool) => tool.name === name))
    const calls = isLoop ? (steps[at++] ?? []) : []
    return {
      reasoning: isLoop ? [THOUGHT] : [],
      text: calls.length === 0 ? [isLoop ? ANSWER : 'A day'] : [],
      calls: calls.map(({ name, args }, index) => ({
        id: `call_${at}_${index}_${name}`,
        name,
        pieces: [JSON.stringify(args)],
      })),
      finish: calls.length > 0 ? 'tool_calls' : 'stop',
      stop: undefined,
      usage: { input: 40, cached: 0, output: 12, reasoning: 0 },
      faults: {},
    }
  }
}
