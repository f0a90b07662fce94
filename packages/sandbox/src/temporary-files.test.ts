/** The files of the sandbox while they are read: none stays open. */
import { afterAll, expect, it } from 'bun:test'
import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { streamFile } from './temporary-files.ts'

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-temporary-files-'))
const path = join(directory, 'a.bin')
writeFileSync(path, Buffer.alloc(1_000_000, 'a'))
afterAll(() => rmSync(directory, { recursive: true }))

function isOpen(): boolean {
  const linkOf = (name: string) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`)
    } catch {
      return ''
    }
  }
  return readdirSync('/proc/self/fd').some((name) => linkOf(name) === path)
}

it.skipIf(process.platform !== 'linux')('are open only while they are read, until the end or an abort', async () => {
  const control = new AbortController()
  const unread = await streamFile(path, control.signal)
  expect(isOpen()).toBe(false)
  const reader = unread.getReader()
  await reader.read()
  expect(isOpen()).toBe(true)
  control.abort()
  await expect(reader.read()).rejects.toThrow()
  expect(isOpen()).toBe(false)

  const { signal } = new AbortController()
  expect((await new Response(await streamFile(path, signal)).bytes()).length).toBe(1_000_000)
  expect(isOpen()).toBe(false)

  const left = (await streamFile(path, signal)).getReader()
  await left.read()
  await left.cancel()
  expect(isOpen()).toBe(false)
  await expect(streamFile(join(directory, 'none'), signal)).rejects.toMatchObject({ code: 'output_gone' })
})
