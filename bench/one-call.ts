/** The gateway with everything on, in this process: answers without the socket of a client, from a vendor in another process. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../src/config/load/load.ts'
import { createGateway } from '../src/gateway/gateway.ts'
import { systemClock } from '../src/kit/clock.ts'
import { createLog } from '../src/kit/log.ts'
import { everythingOn, TOKEN } from './everything-on.ts'
import { endEverything } from './processes.ts'
import { bodyFor, startVendor } from './subjects.ts'

/** Until all recorders have written what they hold. */
export const SETTLE_MILLISECONDS = 1_500

/** `ANSWER`: a whole answer, a stream that passes through, or the same stream translated to Messages. */
const ANSWERS = { whole: 'chat/completions', stream: 'chat/completions', messages: 'messages' }
export type CallAnswer = keyof typeof ANSWERS
const answer = (process.env.ANSWER ?? 'whole') as CallAnswer

function bodyOf(): string {
  if (answer === 'whole') return bodyFor('bench/whole', false)
  const body = bodyFor('bench/stream', true)
  if (answer === 'stream') return body
  const { messages, ...rest } = JSON.parse(body)
  const [{ content: system }, ...others] = messages
  return JSON.stringify({ ...rest, system, messages: others })
}

const body = bodyOf()
const headers = {
  'content-type': 'application/json',
  'content-length': String(body.length),
  authorization: `Bearer ${TOKEN}`,
}

export const newRequest = () => new Request(`http://127.0.0.1/v1/${ANSWERS[answer]}`, { method: 'POST', headers, body })

const directories: string[] = []

/** Ends the vendor and removes the files; at the exit of a process by itself, but not of a runner of tests. */
export function endCalls(): void {
  endEverything()
  for (const dir of directories.splice(0)) rmSync(dir, { recursive: true, force: true })
}

/** The function makes one call, and throws where it is not answered with 200. */
export async function startOneCall(): Promise<() => Promise<void>> {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-call-'))
  directories.push(dir)
  process.on('exit', endCalls)
  const { port: vendorPort } = await startVendor(dir)
  const home = join(dir, 'home')
  const { environment } = everythingOn({ home, vendorPort, binary: '', server: '{}' })
  const vendors = { presets: [], discovered: [], sandbox: {} }
  const config = loadConfig({ environment, cwd: home, flags: {}, vendors })
  const log = createLog({ clock: systemClock, level: 'info', pretty: false, write: () => {} })
  const gateway = await createGateway({ config, environment, clock: systemClock, log, version: '0.0.0' })
  await gateway.discovery
  return async () => {
    const response = await gateway.fetch(newRequest())
    const text = await response.text()
    if (response.status !== 200) throw new Error(`${response.status}: ${text}`)
  }
}
