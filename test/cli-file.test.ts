/** `gatehouse file` and `gatehouse batch` on the store, beside a gateway that serves its clients. */
import { expect, it, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { UsageError } from '../src/cli/arguments.ts'
import { run as runBatch } from '../src/cli/commands/batch.ts'
import { run as runFile } from '../src/cli/commands/file.ts'
import { openStore } from '../src/store/open-store.ts'
import { anthropic, chatLine, createBatch, endOf, openai } from './kit/batches.ts'
import { manualClock } from './kit/clock.ts'
import { startGateway } from './kit/gateway.ts'
import { collectingTerminal } from './kit/terminal.ts'

test('files are listed, shown and deleted on the store, as batches are listed and shown', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-cli-file-'))
  try {
    await using gateway = await startGateway(
      {},
      { clock: manualClock(Date.now()), store_url: `sqlite:${join(directory, 'gatehouse.db')}` },
    )
    const gatehouse = async (run: typeof runFile, ...args: string[]) => {
      const environment = { GATEHOUSE_DISCOVER: 'off', GATEHOUSE_DATA_DIR: directory }
      const { terminal, printed } = collectingTerminal({ cwd: directory, environment })
      return run(args, terminal).then(
        () => printed.out,
        (thrown: Error) => thrown.message,
      )
    }
    const client = openai(gateway)
    const batch = await endOf(gateway, client, (await createBatch(client, [chatLine('a')])).id)
    expect(await gatehouse(runBatch, 'list')).toStartWith(`${batch.id}  completed`)
    await anthropic(gateway).messages.batches.create({
      requests: [
        {
          custom_id: 'a',
          params: { model: 'sandbox/general', max_tokens: 20, messages: [{ role: 'user', content: 'Hello' }] },
        },
      ],
    })
    const [newest = '', oldest = ''] = (await gatehouse(runBatch, 'list')).split('\n')
    expect(newest).toStartWith('msgbatch_')
    const firstColumn = (line: string) => line.search(/(?<= {2})\S/)
    expect(firstColumn(oldest)).toBe(firstColumn(newest))
    expect(oldest.indexOf(' /v1/')).toBe(newest.indexOf(' /v1/'))
    expect(await gatehouse(runBatch, 'show', batch.id)).toContain('1 succeeded, 0 errored')
    const input = batch.input_file_id
    const listed = await gatehouse(runFile, 'list')
    expect(listed).toContain(`${batch.output_file_id}  batch_output`)
    expect(listed).toContain(`${input}  batch  `)
    expect(JSON.parse(await gatehouse(runFile, 'list', '--limit', '1', '--json'))).toMatchObject({ has_more: true })
    expect(await gatehouse(runFile, 'list', '--purpose', 'user_data')).toBe('There are no such files.\n')
    expect(await gatehouse(runFile, 'list', '--limit', '1001')).toContain('must be a number from 1 to 1000')
    expect(await gatehouse(runFile, 'show', input)).toContain('"lines.jsonl"\n  token ')
    expect(await gatehouse(runFile, 'delete', input)).toBe(`The file ${input} is deleted.\n`)
    expect(await gatehouse(runFile, 'delete', input)).toBe(`There is no file "${input}".`)
    const message = await client.files.retrieve(input).catch((thrown: Error) => thrown.message)
    expect(message).toContain('No such file')
  } finally {
    rmSync(directory, { recursive: true })
  }
})

it.each([
  [
    runBatch,
    ['--status', 'unfinished,completd'],
    '--status: found "completd", must be one of validating, failed, in_progress, finalizing, completed, expired, cancelling, cancelled, unfinished; did you mean "completed"?',
  ],
  [
    runFile,
    ['--purpose', 'fine-tune'],
    '--purpose: found "fine-tune", must be one of batch, user_data, vision, batch_output',
  ],
] as const)('refuses an unknown value of an option of a list as wrong usage: %p %p', async (run, flags, message) => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-cli-file-'))
  try {
    await (await openStore({ url: `sqlite:${join(directory, 'gatehouse.db')}` })).close()
    const { terminal } = collectingTerminal({ cwd: directory, environment: { GATEHOUSE_DATA_DIR: directory } })
    const thrown = await run(['list', ...flags], terminal).catch((error: unknown) => error)
    expect(thrown).toBeInstanceOf(UsageError)
    expect((thrown as UsageError).message).toBe(message)
  } finally {
    rmSync(directory, { recursive: true })
  }
})
