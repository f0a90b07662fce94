/** The parent's side of a gateway in a separate process: started with a plan, called, killed. */
import type { TaskAnswer, TaskData } from '../../src/spec/task.ts'
import type { CrashPlan } from './crash-gateway.ts'

/** The token of every plan. */
export const TOKEN = 'sk-crash-suite-0000000000000000'
/** A process that has not reached its point by then is killed where it is. */
const KILL_MILLISECONDS = 20_000

export class GatewayProcess {
  readonly process: Bun.Subprocess<'ignore', 'pipe', 'pipe'>
  readonly url: Promise<string>
  /** `program`: of test/kit/crash-gateway.ts. */
  constructor(program: string, plan: CrashPlan) {
    this.process = Bun.spawn([program, JSON.stringify(plan)], {
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
  /** How it ended: killed by itself at the point, or by the parent. */
  async exited(timeout_ms = KILL_MILLISECONDS): Promise<'at the point' | 'elsewhere'> {
    let is_late = false
    const late = setTimeout(() => {
      is_late = true
      this.process.kill('SIGKILL')
    }, timeout_ms)
    await this.process.exited
    clearTimeout(late)
    return is_late ? 'elsewhere' : 'at the point'
  }
}

export async function firstLine(output: ReadableStream<Uint8Array>): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const piece of output) {
    text += decoder.decode(piece, { stream: true })
    if (text.includes('\n')) return text.slice(0, text.indexOf('\n'))
  }
  throw new Error('The gateway exited before it listened.')
}

const isEnded = ({ status }: TaskData) => status === 'SUCCESS' || status === 'FAILURE'

/** Waits for the end of a task and returns it. */
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
