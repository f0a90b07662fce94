/** Orders of vendors' batches that were created after a backup: the gateway that was restored from it finds them. */
import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { restoreBackup } from '../src/store/backup/restore-backup.ts'
import { writeBackup } from '../src/store/backup/write-backup.ts'
import { startBatchVendor } from './kit/batch-vendor.ts'
import { chatLine, createBatch, endOf, openai, resultsOf, runUntil } from './kit/batches.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'

type Kind = 'chatcompat' | 'messages-compat' | 'contentgen-compat'
type Vendor = ReturnType<typeof startBatchVendor>
type Shape = { vendor: Vendor; kind?: Kind; batch?: 'native' | 'gateway' }

const KINDS: [Kind][] = [['chatcompat'], ['messages-compat'], ['contentgen-compat']]
/** How far the order had come when it was backed up. */
const COLLECTED = ['was collected', 'was not collected yet'] as const
const LISTED_MILLISECONDS = 300_000
const root = mkdtempSync(join(tmpdir(), 'gatehouse-restored-orders-'))
afterAll(() => rmSync(root, { recursive: true }))

const lines = (count: number) =>
  Array.from({ length: count }, (_, at) => chatLine(`line-${at}`, `Say ${at}`, 'acme/chat'))

function start(directory: string, { vendor, kind = 'chatcompat', batch = 'native' }: Shape): Promise<TestGateway> {
  const store_url = `sqlite:${join(directory, 'gatehouse.db')}`
  const base_url = `${vendor.url}${kind === 'chatcompat' ? '/v1' : ''}`
  return startGateway(
    {
      data_dir: directory,
      sandbox: false,
      outputs: { link_hours: 24, keep_days: 30, max_bytes: 1_000_000, directory: join(directory, 'outputs') },
      providers: { acme: { kind, base_url, key: 'acme-key' } },
      models: {
        'acme/chat': { families: ['chatcompat'], batch, prices: { input: 2, output: 4 } },
        'acme/other': { families: ['chatcompat'], batch },
      },
    },
    { store_url },
  )
}

/** A vendor that keeps its first request, and all that follow, waiting until it is opened. */
function heldVendor(behaviour: Parameters<typeof startBatchVendor>[0] = {}) {
  const [reached, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const before = () => {
    reached.resolve()
    return opened.promise
  }
  return Object.assign(startBatchVendor({ ...behaviour, before }), { reached: reached.promise, open: opened.resolve })
}

/** As if it had been backed up before its first order was collected. */
function uncollect(path: string): void {
  using database = new Database(path)
  database.run("update batches set progress = json_remove(progress, '$.orders', '$.order_count', '$.is_ordered')")
  database.run('update batch_lines set state = 0')
}

/** As a bucket that is not in the backup, from which the first gateway has removed the lines of an order that had ended. */
function removeLines(path: string): void {
  const outputs = join(dirname(path), 'outputs')
  const found = readdirSync(outputs, { recursive: true }).map(String)
  for (const name of found.filter((one) => /order-[^/]*$/.test(one))) rmSync(join(outputs, name))
}

type Restoring = { is_stopped?: boolean; change?: ((path: string) => void) | undefined }

/** Backs up the first gateway as it is now; the result restores that, once the first has gone on as `meanwhile` says. */
async function backUp(first: TestGateway, directory: string) {
  const path = join(directory, 'taken.backup')
  const made_at = new Date(first.clock.now()).toISOString()
  const outputs = { directory: join(directory, 'outputs') }
  await writeBackup({ url: `sqlite:${join(directory, 'gatehouse.db')}`, path, version: '0', made_at, outputs })
  return async (shape: Shape, { is_stopped = false, change }: Restoring = {}): Promise<TestGateway> => {
    const to = join(directory, 'restored')
    const now_ms = first.clock.now()
    await restoreBackup({
      path,
      url: `sqlite:${join(to, 'gatehouse.db')}`,
      outputs: join(to, 'outputs'),
      now_ms,
      is_stopped,
    })
    change?.(join(to, 'gatehouse.db'))
    const second = await start(to, shape)
    second.clock.advance(now_ms - second.clock.now())
    return second
  }
}

/** The backup of a gateway that was stopped while its vendor kept its first request waiting. */
async function stopped(shape: { vendor: ReturnType<typeof heldVendor> }, all: ReturnType<typeof lines>) {
  const directory = mkdtempSync(join(root, 's-'))
  const first = await start(directory, shape)
  const { id } = await createBatch(openai(first), all)
  await shape.vendor.reached
  const restore = await backUp(first, directory)
  await first[Symbol.asyncDispose]()
  return { first, id, restore }
}

const idOf = (at: string) => at.replace(/^batch_/, '')
/** As the first order of a batch has been created since, with some of its lines. */
const ordered = (batch_id: string, at: readonly number[], now: number) => {
  const mark = `gh${idOf(batch_id)}x0_`
  const all = lines(Math.max(...at) + 1)
  return {
    id: 'openai-1',
    api: 'openai',
    input: 'file-9',
    mark: { gatehouse_order: mark },
    lines: at.map((one) => ({ id: `${mark}${one}`, body: all[one]?.body as Record<string, unknown> })),
    polls: 0,
    status: 'in_progress',
    at: now,
  }
}

describe('a restored batch', () => {
  describe.each(COLLECTED)('whose order %s', (state) => {
    test.each(KINDS)('gets the results of one that %s has executed since, and orders nothing', async (kind) => {
      const clock: { now?: () => number } = {}
      await using vendor = heldVendor({ now: () => clock.now?.() ?? 0 })
      const directory = mkdtempSync(join(root, 'a-'))
      const first = await start(directory, { vendor, kind })
      clock.now = first.clock.now
      const client = openai(first)
      const { id } = await createBatch(client, lines(30))
      await vendor.reached
      const restore = await backUp(first, directory)
      vendor.open()
      expect((await endOf(first, client, id)).status).toBe('completed')
      expect(vendor.created()).toBe(1)
      await first[Symbol.asyncDispose]()

      await using second = await restore(
        { vendor, kind },
        { change: state === 'was collected' ? undefined : uncollect },
      )
      const again = openai(second, { apiKey: first.token })
      const batch = await endOf(second, again, id)
      expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 30, completed: 30, failed: 0 } })
      expect(await resultsOf(again, batch.output_file_id)).toHaveLength(30)
      expect([vendor.created(), vendor.calls()]).toEqual([1, 0])
    })
  })

  test.each(KINDS)('finds an order that was uploaded before the backup, and created by %s after it', async (kind) => {
    const clock: { now?: () => number } = {}
    await using vendor = startBatchVendor({
      now: () => clock.now?.() ?? 0,
      create: (count) => (count === 1 ? 'busy' : 'ok'),
    })
    const directory = mkdtempSync(join(root, 'b-'))
    const first = await start(directory, { vendor, kind })
    clock.now = first.clock.now
    const client = openai(first)
    const { id } = await createBatch(client, lines(3))
    await runUntil(first, async () => vendor.created() === 1)
    await first.instance.batches.idle()
    const restore = await backUp(first, directory)
    await endOf(first, client, id)
    expect(vendor.batches).toHaveLength(1)
    await first[Symbol.asyncDispose]()

    await using second = await restore({ vendor, kind })
    const batch = await endOf(second, openai(second, { apiKey: first.token }), id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 3 } })
    expect(vendor.created()).toBe(2)
  })

  test.each([
    ['as soon as a list would show it', false],
    ['at once where no gateway has run since', true],
  ])('is ordered once where nothing was ordered since the backup, %s', async (_, is_stopped) => {
    await using vendor = heldVendor()
    const { first, id, restore } = await stopped({ vendor }, lines(3))
    vendor.open()

    await using second = await restore({ vendor }, { is_stopped })
    const at = second.clock.now()
    await runUntil(second, async () => vendor.created() > 0)
    expect(second.clock.now() - at >= LISTED_MILLISECONDS).toBe(!is_stopped)
    const batch = await endOf(second, openai(second, { apiKey: first.token }), id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { completed: 3 } })
    expect([vendor.created(), vendor.calls()]).toEqual([1, 0])
  })

  test.each([
    ['the first', Array.from({ length: 10 }, (_, at) => at + 1)],
    ['the last', Array.from({ length: 10 }, (_, at) => at + 21)],
  ])('orders what the found order has not: it had %s lines', async (_, found) => {
    await using vendor = heldVendor()
    const { first, id, restore } = await stopped({ vendor }, lines(30))
    vendor.open()
    vendor.batches.push(ordered(id, found, first.clock.now()))

    await using second = await restore({ vendor })
    const client = openai(second, { apiKey: first.token })
    const batch = await endOf(second, client, id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 30, completed: 30 } })
    expect(vendor.batches.map((one) => one.lines.length)).toEqual([10, 20])
    expect((await resultsOf(client, batch.output_file_id)).map(({ custom_id }) => custom_id).sort()).toEqual(
      lines(30)
        .map(({ custom_id }) => custom_id)
        .sort(),
    )
  })

  test.each([
    [
      'what the vendor has executed',
      (vendor: ReturnType<typeof heldVendor>, id: string, now: number) => {
        vendor.batches.push(
          ordered(
            id,
            Array.from({ length: 30 }, (_, at) => at + 1),
            now,
          ),
        )
      },
      1,
    ],
    ['an order of their own where the vendor has none', () => {}, 1],
  ] as const)('whose lines in an order are gone has %s', async (_, since, batches) => {
    await using vendor = heldVendor()
    const { first, id, restore } = await stopped({ vendor }, lines(30))
    vendor.open()
    since(vendor, id, first.clock.now())

    await using second = await restore({ vendor }, { change: removeLines })
    const batch = await endOf(second, openai(second, { apiKey: first.token }), id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 30, completed: 30, failed: 0 } })
    expect([vendor.batches.length, vendor.calls()]).toEqual([batches, 0])
  })

  test('whose order had begun before the backup ends, with the lines of it that have no result as unknown', async () => {
    await using vendor = startBatchVendor({ line: (text) => (text === 'Say 1' ? 'missing' : 'ok'), polls: 3 })
    const directory = mkdtempSync(join(root, 'g-'))
    const first = await start(directory, { vendor })
    const { id } = await createBatch(openai(first), lines(3))
    await runUntil(first, async () => vendor.created() === 1)
    await first.instance.batches.idle()
    const restore = await backUp(first, directory)
    await first[Symbol.asyncDispose]()

    await using second = await restore({ vendor }, { change: removeLines })
    const client = openai(second, { apiKey: first.token })
    const batch = await endOf(second, client, id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 2, failed: 1 } })
    const [unknown] = await resultsOf(client, batch.error_file_id)
    expect([unknown?.custom_id, unknown?.error?.code]).toEqual(['line-1', 'outcome_unknown'])
    expect(vendor.created()).toBe(1)
  })

  test('says of no line that it was not executed where its window ended before it was restored', async () => {
    await using vendor = heldVendor()
    const { first, id, restore } = await stopped({ vendor }, lines(3))
    vendor.open()
    first.clock.advance(25 * 3_600_000)

    await using second = await restore({ vendor }, { change: uncollect })
    const client = openai(second, { apiKey: first.token })
    const batch = await endOf(second, client, id)
    expect(batch).toMatchObject({ status: 'expired', request_counts: { total: 3, completed: 0, failed: 3 } })
    const errors = await resultsOf(client, batch.error_file_id)
    expect(errors.map(({ error }) => error?.code)).toEqual(Array(3).fill('outcome_unknown'))
    expect(vendor.created()).toBe(0)
  })

  test.each(KINDS)('gets the results of %s although its window ended before it was restored', async (kind) => {
    const clock: { now?: () => number } = {}
    await using vendor = heldVendor({ now: () => clock.now?.() ?? 0 })
    const directory = mkdtempSync(join(root, 'w-'))
    const first = await start(directory, { vendor, kind })
    clock.now = first.clock.now
    const { id } = await createBatch(openai(first), lines(3))
    await vendor.reached
    const restore = await backUp(first, directory)
    vendor.open()
    expect((await endOf(first, openai(first), id)).status).toBe('completed')
    await first[Symbol.asyncDispose]()
    first.clock.advance(25 * 3_600_000)

    await using second = await restore({ vendor, kind }, { change: uncollect })
    const batch = await endOf(second, openai(second, { apiKey: first.token }), id)
    expect(batch).toMatchObject({ status: 'expired', request_counts: { total: 3, completed: 3, failed: 0 } })
    expect([vendor.created(), vendor.calls()]).toEqual([1, 0])
  })

  test.each([
    ['goes on', 0, 'completed'],
    ['goes on until it is cancelled', 0, 'cancelled'],
    ['has ended', 25, 'expired'],
  ] as const)(
    'whose window %s finds an order after one that was refused for want of room',
    async (_, hours, status) => {
      const clock: { now?: () => number } = {}
      await using vendor = heldVendor({
        now: () => clock.now?.() ?? 0,
        create: (count) => (count === 1 ? 'busy' : 'ok'),
      })
      const directory = mkdtempSync(join(root, 'r-'))
      const first = await start(directory, { vendor })
      clock.now = first.clock.now
      const { id } = await createBatch(openai(first), [...lines(2), chatLine('other', 'Say it', 'acme/other')])
      await vendor.reached
      const restore = await backUp(first, directory)
      vendor.open()
      await runUntil(first, async () => vendor.executed.size > 0)
      expect([...vendor.executed.keys()]).toEqual(['Say it'])
      await first[Symbol.asyncDispose]()
      first.clock.advance(hours * 3_600_000)

      await using second = await restore({ vendor }, { change: uncollect })
      const client = openai(second, { apiKey: first.token })
      if (status === 'cancelled') {
        await runUntil(second, async () => vendor.executed.size > 1)
        await client.batches.cancel(id)
      }
      const batch = await endOf(second, client, id)
      const completed = status === 'expired' ? 1 : 3
      expect(batch).toMatchObject({ status, request_counts: { total: 3, completed, failed: 3 - completed } })
      expect((await resultsOf(client, batch.output_file_id)).map(({ custom_id }) => custom_id)).toContain('other')
      const errors = await resultsOf(client, batch.error_file_id)
      expect(errors.map(({ error }) => error?.code)).toEqual(Array(3 - completed).fill('outcome_unknown'))
      expect(vendor.executed.get('Say it')).toBe(1)
    },
  )

  test('with exactly_once ends the lines that the gateway may have called since as unknown', async () => {
    await using vendor = heldVendor()
    const directory = mkdtempSync(join(root, 'e-'))
    const first = await start(directory, { vendor, batch: 'gateway' })
    const { id } = await createBatch(openai(first), lines(3), { exactly_once: true })
    await vendor.reached
    const restore = await backUp(first, directory)
    vendor.open()
    await endOf(first, openai(first), id)
    expect(vendor.calls()).toBe(3)
    await first[Symbol.asyncDispose]()

    await using second = await restore({ vendor, batch: 'gateway' }, { change: uncollect })
    const client = openai(second, { apiKey: first.token })
    const batch = await endOf(second, client, id)
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 0, failed: 3 } })
    const errors = await resultsOf(client, batch.error_file_id)
    expect(errors.map(({ error, response }) => error?.code ?? response?.body)).toEqual(Array(3).fill('outcome_unknown'))
    expect(vendor.calls()).toBe(3)
  })
})
