import { expect, it } from 'bun:test'
import { configOf } from '../../../test/kit/gateway.ts'
import { DEFAULT_REQUEST_LOG } from '../../config/config.ts'
import { configOfWorker } from './worker-process.ts'

const config = configOf({
  server: { max_bytes_in_flight: 1_000, max_token_bytes_in_flight: 500 },
  request_log: {
    ...DEFAULT_REQUEST_LOG,
    sinks: [
      { file: { path: 'log/requests.ndjson' } },
      { file: { path: 'no-ending' } },
      { http: { url: 'http://127.0.0.1' } },
    ],
  },
})

it('a worker has its part of the bytes in flight, and files of its own', () => {
  const { server, request_log } = configOfWorker(config, { number: 2, count: 4 })
  expect([server.max_bytes_in_flight, server.max_token_bytes_in_flight]).toEqual([250, 125])
  expect(request_log.sinks.map(({ file, http }) => file?.path ?? http?.url)).toEqual([
    'log/requests.2.ndjson',
    'no-ending.2',
    'http://127.0.0.1',
  ])
})

it('a part of what is derived from the memory is derived as well', () => {
  const [one, two] = [1, 2].map(
    (count) => configOfWorker(configOf({}), { number: 1, count }).server.max_bytes_in_flight,
  )
  expect(two).toBe(Math.ceil((one ?? 0) / 2))
})
