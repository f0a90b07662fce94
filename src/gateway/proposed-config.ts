/** Checks the configuration that an administrator proposes: a small text at once, a large one in a worker thread. */
import { dirname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { ConfigError, type ConfigProblem } from '../config/check/problem.ts'
import type { Config } from '../config/config.ts'
import { type ConfigSource, createConfigSource, type Proposal } from '../config/edit/source.ts'
import type { Environment } from '../config/load/environment.ts'
import type { Clock } from '../kit/clock.ts'
import { invalidValue } from '../spec/error.ts'
import { assertProviders } from './check-providers.ts'
import { knownVendors } from './known-vendors.ts'

/** Where the configuration of the running gateway is; can be sent to a thread. */
type ConfigPlace = { environment: Environment; file: string | undefined; data_dir: string }

export type CheckRequest = ConfigPlace & { text: string }
export type CheckResult = { proposal: Proposal } | { problems: ConfigProblem[] } | { failure: string }

/** `check` compares a text with the file on disk; throws ConfigError with its problems. */
type ProposedConfig = ConfigSource & { check(text: string): Promise<Proposal> }

/** Characters up to which a text is checked at once, which takes some 10 ms. Starting a thread takes some 200. */
const LARGE_TEXT = 16_384
/** A text of the greatest size that the API accepts takes 2 s on one slow core. */
const MAX_MILLISECONDS = 20_000

/** The file; without one, the default file in the data directory. */
export function createProposedSource({ environment, file, data_dir }: ConfigPlace): ConfigSource {
  return createConfigSource({
    environment,
    cwd: file === undefined ? data_dir : dirname(file),
    flags: file === undefined ? {} : { config: file },
    vendors: knownVendors(environment),
    isByApi: true,
    data_dir,
    check: (config: Config) => assertProviders(config, environment),
  })
}

export function createProposedConfig({ clock, ...place }: ConfigPlace & { clock: Clock }): ProposedConfig {
  const source = createProposedSource(place)
  let queue: Promise<unknown> = Promise.resolve()

  /** One thread at a time: what administrators send at once must not take every core. */
  function checkLarge(text: string): Promise<Proposal> {
    const result = queue.then(() => inThread({ ...place, text }, clock))
    queue = result.catch(() => {})
    return result
  }

  return { ...source, check: async (text) => (text.length > LARGE_TEXT ? checkLarge(text) : source.diff(text)) }
}

function inThread(request: CheckRequest, clock: Clock): Promise<Proposal> {
  const worker = new Worker(new URL('./proposed-config-worker.ts', import.meta.url))
  worker.unref()
  const { promise, resolve, reject } = Promise.withResolvers<Proposal>()
  const cancelLimit = clock.after(MAX_MILLISECONDS, () => reject(invalidValue('text', TOO_LONG)))
  worker.once('message', (result: CheckResult) => {
    if ('proposal' in result) resolve(result.proposal)
    else reject('problems' in result ? new ConfigError(result.problems) : new Error(result.failure))
  })
  worker.once('error', reject)
  worker.postMessage(request)
  return promise.finally(() => {
    cancelLimit()
    void worker.terminate()
  })
}

const TOO_LONG = `The configuration takes longer than ${MAX_MILLISECONDS / 1_000} seconds to check; validate it with \`gatehouse config validate\` on the host.`
