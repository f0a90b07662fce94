/** `gatehouse import litellm` from the LiteLLM of PyPI, where it is installed: its own examples, and one that runs without a database. */
import { afterEach, describe, expect, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { freePort } from './kit/free-port.ts'
import { importDirectory, lineOf } from './kit/imports.ts'

/** A Python with LiteLLM, as `npm run test:litellm` installs it. */
const PYTHON = process.env.GATEHOUSE_TEST_LITELLM
const found =
  PYTHON === undefined
    ? undefined
    : Bun.spawnSync([PYTHON, '-c', 'import litellm.proxy as p; print(p.__path__[0])'], { stderr: 'ignore' })
const PROXY = found?.exitCode === 0 ? found.stdout.toString().trim().split('\n').at(-1) : undefined
const KEY = 'sk-master-of-the-test'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

describe.skipIf(PROXY === undefined)('gatehouse import litellm', () => {
  const examples = PROXY === undefined ? [] : readdirSync(join(PROXY, 'example_config_yaml'))
  test.each(examples.filter((name) => name.endsWith('.yaml')))('makes a valid file of its example %s', async (name) => {
    using directory = importDirectory()
    const path = join(PROXY ?? '', 'example_config_yaml', name)
    await directory.report(['litellm', path])
    expect(await directory.report(['litellm', path])).toMatchObject({ written: false, accounts: [] })
  })

  test('reads the models of a running one', async () => {
    using directory = importDirectory()
    const model_list = [
      { model_name: 'gpt-4o', litellm_params: { model: 'openai/gpt-4o', api_key: 'sk-upstream', rpm: 60 } },
      {
        model_name: 'eu',
        litellm_params: { model: 'azure/eu', api_base: 'https://eu.openai.azure.com', api_key: 'k' },
      },
      { model_name: 'embed', litellm_params: { model: 'text-embedding-3-small', api_key: 'sk-upstream' } },
    ]
    const config = join(directory.path, 'litellm.yaml')
    writeFileSync(config, JSON.stringify({ model_list, general_settings: { master_key: KEY } }))
    const port = await freePort()
    const child = Bun.spawn(
      [join(dirname(PYTHON ?? ''), 'litellm'), '--config', config, '--host', '127.0.0.1', '--port', String(port)],
      { env: { ...process.env, LITELLM_LOCAL_MODEL_COST_MAP: 'True' }, stdout: 'ignore', stderr: 'ignore' },
    )
    closing.push(async () => {
      child.kill('SIGKILL')
      await child.exited
    })
    const url = `http://127.0.0.1:${port}`
    while (
      !(await fetch(`${url}/health/liveliness`, { keepalive: false }).then(
        (one) => one.ok,
        () => false,
      ))
    ) {
      if (child.exitCode !== null) throw new Error(`litellm ended with ${child.exitCode}`)
      await Bun.sleep(200)
    }
    const report = await directory.report(['litellm', url], { LITELLM_MASTER_KEY: KEY })
    expect(lineOf(report, '/key/list')?.why).toContain('without a database')
    expect(report.variables.map(({ name }) => name).sort()).toEqual(['AZURE_API_KEY', 'OPENAI_API_KEY'])
    expect(directory.file()).toContain('rate_limits: { requests_per_minute: 60 }')
    expect(directory.file()).toContain('families: [embeddings]')
    expect(directory.file() + JSON.stringify(report)).not.toContain('sk-upstream')
  }, 120_000)
})
