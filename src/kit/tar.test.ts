import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readTar, TAR_END, tarHead, tarPadding } from './tar.ts'

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-tar-'))
afterAll(() => rmSync(directory, { recursive: true }))

const FILES: [string, Buffer][] = [
  ['a.txt', Buffer.from('hello')],
  ['empty', Buffer.alloc(0)],
  [`outputs/${'x'.repeat(90)}/${'y'.repeat(90)}`, Buffer.alloc(1024, 7)],
  ['block', Buffer.alloc(512, 1)],
]
const archive = Buffer.concat([
  ...FILES.flatMap(([name, content]) => [tarHead(name, content.length), content, tarPadding(content.length)]),
  TAR_END,
])

async function withArchive<T>(bytes: Buffer, work: (file: FileHandle) => Promise<T>): Promise<T> {
  const path = join(directory, 'archive.tar')
  writeFileSync(path, bytes)
  const file = await open(path, 'r')
  try {
    return await work(file)
  } finally {
    await file.close()
  }
}

async function read(file: FileHandle): Promise<[string, Buffer][]> {
  const found: [string, Buffer][] = []
  for await (const { name, content } of readTar(file)) {
    const chunks: Buffer[] = []
    for await (const bytes of content()) chunks.push(bytes)
    found.push([name, Buffer.concat(chunks)])
  }
  return found
}

describe('an archive', () => {
  test('is read as it was written, also by tar', async () => {
    expect(await withArchive(archive, read)).toEqual(FILES)
    const { stdout } = Bun.spawnSync(['tar', '-tf', join(directory, 'archive.tar')])
    expect(stdout.toString().trim().split('\n')).toEqual(FILES.map(([name]) => name))
  })

  test('is refused where it is cut at any block, or a head is changed', async () => {
    for (let length = 0; length < archive.length - TAR_END.length; length += 512) {
      const cut = archive.subarray(0, length + 100)
      await expect(withArchive(cut, read)).rejects.toThrow('it is cut short')
    }
    const changed = Buffer.from(archive)
    changed[3] = 1
    await expect(withArchive(changed, read)).rejects.toThrow('it is no archive, or damaged')
  })

  test('holds sizes beyond eleven octal digits, and refuses names that no head can hold', () => {
    expect(tarHead('large', 8 ** 11).readBigUInt64BE(128)).toBe(BigInt(8 ** 11))
    expect(() => tarHead('x'.repeat(300), 1)).toThrow('is too long for an archive')
  })
})
