/** The parent's side of a gateway that runs as a process of its own: started by a plan, called, killed. */
import { join } from 'node:path'
import type { TaskAnswer, TaskData } from '../../src/spec/task.ts'
import type { CrashPlan } from './crash-gateway.ts'

/** What every plan lets in. */
export const TOKEN = 'sk-crash-suite-0000000000000000'
/** A process that has not come by its point by then is killed where it is. */
const PATIENCE_MILLISECONDS = 20_000

export class GatewayProcess {
  readonly process: Bun.Subprocess<'ignore', 'pipe', 'pipe'>
  readonly url: Promise<string>
  constructor(plan: CrashPlan) {
    const script = join(import.meta.dir, 'crash-gateway.ts')
    this.process = Bun.spawn([process.execPath, script, JSON.stringify(plan)], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    this.url = firstLine(this.process.stdout)
  }
  async call(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', ...init.headers }
    return fetch(`${await this.url}${path}`, { ...init, headers })
  }
  /** How it ended: by its own hand at the point, or by ours. */
  async exited(patience_ms = PATIENCE_MILLISECONDS): Promise<'at the point' | 'elsewhere'> {
    let is_late = false
    const late = setTimeout(() => {
      is_late = true
      this.process.kill('SIGKILL')
    }, patience_ms)
    await this.process.exited
    clearTimeout(late)
    return is_late ? 'elsewhere' : 'at the point'
  }
}

async function firstLine(output: ReadableStream<Uint8Array>): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const piece of output) {
    text += decoder.decode(piece, { stream: true })
    if (text.includes('\n')) return text.slice(0, text.indexOf('\n'))
  }
  throw new Error('The gateway ended before it listened.')
}

const isEnded = ({ status }: TaskData) => status === 'SUCCESS' || status === 'FAILURE'

/** Waits for the end of a task, and says how it ended. */
export async function waitForEnd(
  gateway: GatewayProcess,
  task_id: string,
  path = '/v1/video/generations',
): Promise<TaskData> {
  for (;;) {
    const response = await gateway.call(`${path}/${task_id}?wait=20`)
    if (response.status !== 200) throw new Error(`${task_id}: ${response.status} ${await response.text()}`)
    const { data } = (await response.json()) as TaskAnswer
    if (isEnded(data)) return data
  }
}
