/** One of several processes of a gateway: its end of the channel to the process that has started it. */
import { type Config, defaultBytesInFlight } from '../../config/config.ts'
import type { Siblings } from '../../gateway/metering.ts'
import type { Clock } from '../../kit/clock.ts'
import type { FamilyValues } from '../../observe/metrics/process-metrics.ts'

/** What a worker sends. `values`: what it has counted itself; `id`: of the question that they answer. */
export type FromWorker =
  | { is: 'output'; text: string }
  | { is: 'ready' }
  | { is: 'counted?'; id: number; values: FamilyValues[] }
  | { is: 'values'; id: number; values: FamilyValues[] }

/** What a worker gets. `retire`: it is being replaced. */
export type ToWorker =
  | { is: 'retire' }
  | { is: 'values?'; id: number }
  | { is: 'counted'; id: number; values: FamilyValues[][] }

export type Worker = {
  /** From 1 on. */
  number: number
  /** Of all workers. */
  count: number
  siblings: Siblings
  /** Prints to standard output, once all workers accept requests. */
  output(text: string): void
  /** To be called once it accepts requests. */
  ready(): void
  onRetire(work: () => void): void
  /** Resolves when the process that has started it is gone. */
  orphaned: Promise<string>
  /** Sends what was counted, and lets the process end. */
  close(): Promise<void>
}

/** The environment variable that makes a process a worker: `2/4`. */
export const WORKER_VARIABLE = 'GATEHOUSE_WORKER'
/** Of the last values of a worker, which answer no question. */
export const LAST_VALUES = 0
/** A scrape waits no longer for the other processes. */
const ANSWER_MILLISECONDS = 3_000

/** Undefined: this process is the only one. */
export function workerOf(environment: Record<string, string | undefined>, clock: Clock): Worker | undefined {
  const [, number, count] = /^(\d+)\/(\d+)$/.exec(environment[WORKER_VARIABLE] ?? '') ?? []
  if (number === undefined || count === undefined || !process.send) return undefined
  let own: () => Promise<FamilyValues[]> = async () => []
  let retire = () => {}
  let last_id = 0
  const waiting = new Map<number, (values: FamilyValues[][]) => void>()
  const orphaned = Promise.withResolvers<string>()

  const send = (message: FromWorker): void => {
    if (process.connected) process.send?.(message)
  }

  async function counted(): Promise<FamilyValues[][]> {
    const id = ++last_id
    const { promise, resolve } = Promise.withResolvers<FamilyValues[][]>()
    waiting.set(id, resolve)
    const cancel = clock.after(ANSWER_MILLISECONDS, () => resolve([]))
    send({ is: 'counted?', id, values: await own() })
    const values = await promise
    cancel()
    waiting.delete(id)
    return values
  }

  process.on('message', (message: ToWorker) => {
    if (message.is === 'retire') retire()
    else if (message.is === 'counted') waiting.get(message.id)?.(message.values)
    else void own().then((values) => send({ is: 'values', id: message.id, values }))
  })
  process.on('disconnect', () => orphaned.resolve('the process of the workers has ended'))

  return {
    number: Number(number),
    count: Number(count),
    siblings: {
      counted,
      share(read) {
        own = read
      },
    },
    output: (text) => send({ is: 'output', text }),
    ready: () => send({ is: 'ready' }),
    onRetire(work) {
      retire = work
    },
    orphaned: orphaned.promise,
    async close() {
      send({ is: 'values', id: LAST_VALUES, values: await own() })
      if (process.connected) process.disconnect?.()
    },
  }
}

/** What all workers share is divided among them, and each writes files of its own. */
export function configOfWorker(config: Config, { number, count }: Pick<Worker, 'number' | 'count'>): Config {
  const { server, request_log } = config
  const part = (bytes: number) => Math.ceil(bytes / count)
  const { max_bytes_in_flight = defaultBytesInFlight(), max_token_bytes_in_flight: of_token } = server
  return {
    ...config,
    server: {
      ...server,
      max_bytes_in_flight: part(max_bytes_in_flight),
      max_token_bytes_in_flight: of_token && part(of_token),
    },
    request_log: {
      ...request_log,
      sinks: request_log.sinks.map((sink) =>
        sink.file ? { ...sink, file: { ...sink.file, path: numbered(sink.file.path, number) } } : sink,
      ),
    },
  }
}

/** `log/requests.ndjson` of worker 2: `log/requests.2.ndjson`. */
const numbered = (path: string, number: number): string => path.replace(/(\.[^./]*)?$/, `.${number}$1`)
