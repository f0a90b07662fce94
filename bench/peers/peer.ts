/** A gateway to measure, as data: what to start, where it listens, and what it is told. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Type from 'typebox'
import { Check, Errors } from 'typebox/value'
import type { Target } from '../http-client.ts'
import { GATEWAY_CORE, type Group, startGroup } from '../processes.ts'
import { bodyFor, freePort } from '../subjects.ts'

const Text = Type.String({ minLength: 1 })
const Texts = Type.Record(Type.String(), Type.String())
const Lines = Type.Union([Type.String(), Type.Array(Type.String())])

/**
 * In each text `{port}` and `{port2}` stand for free ports of its own, `{dir}` for a directory of its own, `{vendor}` for the
 * port of the vendor that answers loads, and `{conformance}` for that of the vendor that plays the cases.
 */
export const PeerFile = Type.Object(
  {
    name: Text,
    version: Text,
    /** What is switched on, for the reader of the table. */
    on: Text,
    /** How to get the binary, for the reader. */
    build: Type.Optional(Lines),
    command: Type.Array(Text, { minItems: 1 }),
    env: Type.Optional(Texts),
    /** Written into `{dir}` before the start: text, or its lines, by name. */
    files: Type.Optional(Type.Record(Type.String(), Lines)),
    /** The base of its API, such as `http://127.0.0.1:{port}/v1`. */
    url: Text,
    headers: Type.Optional(Texts),
    /** What it calls the models of the vendor, with `{model}` for `whole`, `stream`, `single` or `slow`. */
    model: Type.Optional(Text),
    /** Where the cases are played, if at another address. */
    conformance_url: Type.Optional(Text),
    /** What it calls the model of the vendor that plays the cases. Default: `model` with `conformance`. */
    conformance_model: Type.Optional(Text),
    /** More for the requests of the cases. */
    conformance_headers: Type.Optional(Texts),
    /** How long its start may take. */
    start_seconds: Type.Optional(Type.Integer({ minimum: 1 })),
  },
  { additionalProperties: false },
)
export type PeerFile = Type.Static<typeof PeerFile>

export type Ports = { vendor: number; conformance: number }

/** A peer whose ports and files are decided. */
export type Peer = {
  name: string
  version: string
  on: string
  start_seconds: number
  start(): Group
  target(model: string, streamed: boolean): Target
  conformance: { url: string; token: string; model: string; headers: Record<string, string> }
}

/** Throws with the path and the rule of what is wrong. */
export function readPeerFile(path: string): PeerFile {
  const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
  if (Check(PeerFile, value)) return value
  const [first] = Errors(PeerFile, value)
  throw new Error(`${path}: ${first?.instancePath || 'the whole'} ${first?.message}`)
}

export function preparePeer(file: PeerFile, ports: Ports, dir: string): Peer {
  const home = join(dir, file.name.replaceAll(/[^a-z0-9]+/gi, '-'))
  mkdirSync(home, { recursive: true })
  const values: Record<string, string> = {
    port: String(freePort()),
    port2: String(freePort()),
    dir: home,
    vendor: String(ports.vendor),
    conformance: String(ports.conformance),
  }
  const fill = (text: string) => text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole)
  const fillAll = (texts: Record<string, string> = {}) =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fill(text)]))
  for (const [name, text] of Object.entries(file.files ?? {})) {
    writeFileSync(join(home, name), fill(typeof text === 'string' ? text : `${text.join('\n')}\n`))
  }
  const { model = '{model}', start_seconds = 30 } = file
  const url = fill(file.url)
  const headers = fillAll(file.headers)
  const modelOf = (name: string) => model.replace('{model}', name)
  return {
    name: file.name,
    version: file.version,
    on: file.on,
    start_seconds,
    start: () =>
      startGroup({
        command: file.command.map(fill),
        core: GATEWAY_CORE,
        log: join(home, 'output.log'),
        env: fillAll(file.env),
        cwd: home,
      }),
    target: (name, streamed) => ({
      url: `${url}/chat/completions`,
      headers: { 'content-type': 'application/json', ...headers },
      body: bodyFor(modelOf(name), streamed),
    }),
    conformance: {
      url: fill(file.conformance_url ?? file.url),
      token: '',
      model: file.conformance_model ?? modelOf('conformance'),
      headers: { ...headers, ...fillAll(file.conformance_headers) },
    },
  }
}
