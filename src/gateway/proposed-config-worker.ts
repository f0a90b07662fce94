/** The thread in which a large proposed configuration is checked: receives one text, and returns what was found. */
import { parentPort } from 'node:worker_threads'
import { ConfigError } from '../config/check/problem.ts'
import { type CheckRequest, type CheckResult, createProposedSource } from './proposed-config.ts'

parentPort?.once('message', ({ text, ...place }: CheckRequest) => {
  parentPort?.postMessage(check(text, place))
})

function check(text: string, place: Omit<CheckRequest, 'text'>): CheckResult {
  try {
    return { proposal: createProposedSource(place).diff(text) }
  } catch (error) {
    if (error instanceof ConfigError) return { problems: error.problems }
    return { failure: (error as Error).message }
  }
}
