/**
 * Python clients before the sandbox: each file of test/python is one run of pytest. Their environment is 250 MB, so it is
 * installed apart: `npm run test:python` does, and .ci/run. Without it these tests are skipped.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { openPort, type Port } from './kit/served.ts'
import { withTls } from './kit/tls-port.ts'

const FOLDER = join(import.meta.dir, 'python')
const PYTHON = join(FOLDER, '.venv/bin/python')
const FILES = readdirSync(FOLDER).filter((name) => /^test_\w+\.py$/.test(name))
/** The frameworks take 20 s to be imported where the machine is busy and nothing is compiled yet. */
const PATIENCE = 240_000

let port: Port
let tls: Awaited<ReturnType<typeof withTls>>
let environment: Record<string, string>
beforeAll(async () => {
  port = await openPort({
    tasks: {
      deadline_minutes: 1,
      copy_deadline_minutes: 1,
      poll_seconds: 0.2,
      slow_poll_seconds: 1,
      concurrency: 8,
      callback_origins: [],
    },
  })
  tls = await withTls(port.url)
  environment = {
    PATH: process.env.PATH ?? '',
    HOME: process.env.HOME ?? '',
    GATEHOUSE_ORIGIN: port.url.replace(/\/v1$/, ''),
    GATEHOUSE_TLS_ORIGIN: tls.url.replace(/\/v1$/, ''),
    GATEHOUSE_TOKEN: port.token,
    GATEHOUSE_NARROW_TOKEN: await port.tokenFor(['sandbox/compact']),
    NO_PROXY: '*',
    // No library may send anything elsewhere, or wait for it.
    LANGSMITH_TRACING: 'false',
    HF_HUB_OFFLINE: '1',
    DO_NOT_TRACK: '1',
  }
})
afterAll(async () => {
  tls.close()
  await port.close()
})

describe.skipIf(!existsSync(PYTHON))('Python clients', () => {
  test.each(FILES)(
    '%s',
    async (file) => {
      const run = Bun.spawn(
        [PYTHON, '-m', 'pytest', '-q', '--no-header', '-p', 'no:cacheprovider', '--tb=short', file],
        {
          cwd: FOLDER,
          env: environment,
          stdout: 'pipe',
          stderr: 'pipe',
        },
      )
      const [output, errors, code] = await Promise.all([
        new Response(run.stdout).text(),
        new Response(run.stderr).text(),
        run.exited,
      ])
      if (code !== 0) throw new Error(`${output}\n${errors}`)
      expect(output).toMatch(/\d+ passed/)
    },
    PATIENCE,
  )
})
