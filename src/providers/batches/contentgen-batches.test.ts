import { expect, test } from 'bun:test'
import type { BatchClientParts } from './batch-client.ts'
import { createContentgenBatches } from './contentgen-batches.ts'

/** A list of pages with two batches each, created at these times, in unix seconds, and `step` later. */
function batchesOf(times: readonly number[], step = -1) {
  let requests = 0
  const transport = {
    async send({ url }: { url: string }) {
      requests++
      const page = Number(new URL(url).searchParams.get('pageToken') ?? 0)
      const operations = [0, 1].map((before) => {
        const createTime = new Date(((times[page] ?? 0) + before * step) * 1000).toISOString()
        return { name: `batches/${page}`, metadata: { displayName: before ? 'another' : `m${page}`, createTime } }
      })
      const next = page + 1 < times.length ? { nextPageToken: String(page + 1) } : {}
      const text = JSON.stringify({ operations, ...next })
      return { status: 200, headers: new Headers(), text: async () => text }
    },
  } as unknown as BatchClientParts['transport']
  const base_url = 'https://generativelanguage.googleapis.com/v1beta'
  const address = { base_url, headers: {}, timeouts: {} } as unknown as BatchClientParts['address']
  const vendor = createContentgenBatches({ id: 'vendor', transport, address })
  const find = (mark: string, since: number) => vendor.find({ mark }, since, new AbortController().signal)
  return { find, requests: () => requests }
}

test('the list is read up to batches that are older than the one that is sought', async () => {
  const { find, requests } = batchesOf([900, 500, 100, 50])
  expect([await find('m3', 400), requests()]).toEqual(['absent', 3])
})

test('a list with the oldest ones first is read to its end', async () => {
  const { find, requests } = batchesOf([50, 100, 500], 1)
  expect([await find('m2', 400), requests()]).toEqual([{ id: 'batches/2' }, 3])
})

test('a batch is found on a page beyond the twentieth', async () => {
  const { find } = batchesOf(Array.from({ length: 150 }, () => 900))
  expect(await find('m149', 400)).toEqual({ id: 'batches/149' })
})
