import { afterEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDirectory } from './directory.ts'

const homes: string[] = []
afterEach(() => {
  for (const home of homes.splice(0)) rmSync(home, { recursive: true, force: true })
})

function storeOf() {
  const home = mkdtempSync(join(tmpdir(), 'gatehouse-directory-'))
  homes.push(home)
  const directory = join(home, 'outputs')
  return { files: createDirectory({ directory }), home, directory }
}

const { signal } = new AbortController()
const bodyOf = (text: string) => new Blob([text]).stream()
const mp4 = (text: string) => ({ content_type: 'video/mp4', body: bodyOf(text) })
const textOf = (body: ReadableStream<Uint8Array> | undefined) => new Response(body ?? null).text()
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)
const writing = (directory: string) => readdirSync(join(directory, '.writing'))

describe('a directory', () => {
  test('stores a file with its type, for its owner only', async () => {
    const { files, directory } = storeOf()
    expect(await files.write('task_1/0', mp4('0123456789'), signal)).toEqual({ bytes: 10 })
    const stored = await files.open('task_1/0')
    expect(stored).toMatchObject({ content_type: 'video/mp4', bytes: 10 })
    expect(await textOf(stored?.body())).toBe('0123456789')
    expect(modeOf(directory)).toBe('700')
    expect(modeOf(join(directory, 'task_1'))).toBe('700')
    expect(modeOf(join(directory, 'task_1/0'))).toBe('600')
    expect(modeOf(join(directory, 'task_1/0~type'))).toBe('600')
    expect(writing(directory)).toEqual([])
  })

  test('returns any range of a file', async () => {
    const { files } = storeOf()
    await files.write('task_1/0', mp4('0123456789'), signal)
    const stored = await files.open('task_1/0')
    for (const [first, last, expected] of [
      [0, 0, '0'],
      [0, 9, '0123456789'],
      [3, 5, '345'],
      [9, 9, '9'],
    ] as const)
      expect(await textOf(stored?.body({ first, last }))).toBe(expected)
  })

  test('returns another version for other content', async () => {
    const { files, directory } = storeOf()
    await files.write('task_1/0', mp4('one'), signal)
    const first = (await files.open('task_1/0'))?.version
    expect((await files.open('task_1/0'))?.version).toBe(first as string)
    await files.write('task_1/0', mp4('two'), signal)
    utimesSync(join(directory, 'task_1/0'), 1000, 1000)
    expect((await files.open('task_1/0'))?.version).not.toBe(first as string)
  })

  test('lets a reader of a replaced file read either the old or the new one', async () => {
    const { files } = storeOf()
    await files.write('task_1/0', mp4('a'.repeat(1_000_000)), signal)
    const reading = (await files.open('task_1/0'))?.body().getReader()
    let text = new TextDecoder().decode((await reading?.read())?.value)
    await files.write('task_1/0', mp4('b'.repeat(1_000_000)), signal)
    for (let next = await reading?.read(); next && !next.done; next = await reading?.read())
      text += new TextDecoder().decode(next.value)
    expect(text).toBe('a'.repeat(1_000_000))
    expect(await textOf((await files.open('task_1/0'))?.body())).toBe('b'.repeat(1_000_000))
  })

  test('keeps the old file, and no temporary one, when a write fails or is aborted', async () => {
    const { files, directory } = storeOf()
    await files.write('task_1/0', mp4('old'), signal)
    const broken = () => {
      let pulls = 0
      return new ReadableStream<Uint8Array>({
        pull(controller) {
          if (pulls++ === 0) controller.enqueue(new Uint8Array(10))
          else controller.error(new Error('broke off'))
        },
      })
    }
    await expect(files.write('task_1/0', { content_type: 'video/webm', body: broken() }, signal)).rejects.toThrow(
      'broke off',
    )
    const aborting = new AbortController()
    let isCanceled = false
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(new Uint8Array(10))
        aborting.abort(new Error('enough'))
      },
      cancel() {
        isCanceled = true
      },
    })
    const aborted = files.write('task_1/0', { content_type: 'video/webm', body: endless }, aborting.signal)
    await expect(aborted).rejects.toThrow('enough')
    expect(isCanceled).toBe(true)
    const stored = await files.open('task_1/0')
    expect([stored?.content_type, await textOf(stored?.body())]).toEqual(['video/mp4', 'old'])
    expect(writing(directory)).toEqual([])
  })

  test('ends a write that waits for its source at once when it is aborted', async () => {
    const { files } = storeOf()
    const aborting = new AbortController()
    const silent = new ReadableStream<Uint8Array>({ pull: () => void aborting.abort(new Error('enough')) })
    await expect(files.write('a', { content_type: 'x/y', body: silent }, aborting.signal)).rejects.toThrow('enough')
  })

  test('adopts a local file', async () => {
    const { files, home } = storeOf()
    const path = join(home, 'made')
    writeFileSync(path, 'made here')
    chmodSync(path, 0o644)
    expect(await files.adopt?.('task_1/0', { content_type: 'video/webm', path })).toEqual({ bytes: 9 })
    expect(existsSync(path)).toBe(false)
    expect(modeOf(join(home, 'outputs/task_1/0'))).toBe('600')
    expect(await textOf((await files.open('task_1/0'))?.body())).toBe('made here')
  })

  test('removes a file with its type, and ignores a missing one', async () => {
    const { files, directory } = storeOf()
    await files.write('task_1/0', mp4('a'), signal)
    await files.write('task_1/1', mp4('b'), signal)
    await files.remove('task_1/0')
    expect(readdirSync(join(directory, 'task_1')).sort()).toEqual(['1', '1~type'])
    await files.remove('task_1/1')
    expect(existsSync(join(directory, 'task_1'))).toBe(false)
    await files.remove('task_1/1')
    expect(await files.open('task_1/1')).toBeUndefined()
    expect(await files.open('task_1')).toBeUndefined()
  })

  test('removes leftovers of interrupted writes once they are old', async () => {
    const { files, directory } = storeOf()
    await files.write('task_1/0', mp4('a'), signal)
    for (const [name, time] of [
      ['old', 999],
      ['young', 1000],
    ] as const) {
      writeFileSync(join(directory, '.writing', name), 'x')
      utimesSync(join(directory, '.writing', name), time, time)
    }
    expect(await files.removeLeftovers?.(1_000_000)).toBe(1)
    expect(writing(directory)).toEqual(['young'])
  })

  const bad = [
    '',
    '/',
    '/etc/passwd',
    '..',
    '../x',
    'a/../b',
    'a//b',
    'a/',
    '.hidden',
    'a/.writing',
    'a\\b',
    'a~type',
    'a\0b',
    'a b',
    'ä',
  ]
  for (const key of [...bad, 'a'.repeat(201)]) {
    test(`rejects the key ${JSON.stringify(key.slice(0, 20))}`, async () => {
      const { files, home } = storeOf()
      await expect(files.write(key, mp4('x'), signal)).rejects.toThrow('not a valid file key')
      await expect(files.open(key)).rejects.toThrow('not a valid file key')
      await expect(files.remove(key)).rejects.toThrow('not a valid file key')
      await expect(files.adopt?.(key, { content_type: 'x/y', path: home })).rejects.toThrow('not a valid file key')
      expect(readdirSync(home)).toEqual([])
    })
  }

  test('accepts a key of 200 characters', async () => {
    const { files } = storeOf()
    expect(await files.write('a'.repeat(200), mp4('x'), signal)).toEqual({ bytes: 1 })
  })
})
