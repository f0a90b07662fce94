import { afterEach, describe, expect, test } from 'bun:test'
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeConfigFile } from './apply.ts'

const made: string[] = []
afterEach(async () => {
  for (const path of made.splice(0)) {
    await chmod(path, 0o700)
    await rm(path, { recursive: true })
  }
})

async function directory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'gatehouse-apply-'))
  made.push(path)
  return path
}

describe('writing the configuration file', () => {
  test('replaces it, keeps its mode and the text before, and leaves nothing else', async () => {
    const file = join(await directory(), 'gatehouse.yaml')
    await writeFile(file, 'old\n', { mode: 0o640 })
    await chmod(file, 0o640)
    expect(await writeConfigFile(file, 'new\n')).toEqual({ file, backup: `${file}.bak` })
    expect(await readFile(file, 'utf8')).toBe('new\n')
    expect(await readFile(`${file}.bak`, 'utf8')).toBe('old\n')
    expect([(await stat(file)).mode & 0o777, (await stat(`${file}.bak`)).mode & 0o777]).toEqual([0o640, 0o640])
    expect((await readdir(join(file, '..'))).sort()).toEqual(['gatehouse.yaml', 'gatehouse.yaml.bak'])
  })

  test('creates one that only its user may read', async () => {
    const file = join(await directory(), 'gatehouse.yaml')
    expect(await writeConfigFile(file, 'new\n')).toEqual({ file, backup: undefined })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
  })

  test('writes behind a link, which stays one', async () => {
    const path = await directory()
    const [file, link] = [join(path, 'real.yaml'), join(path, 'gatehouse.yaml')]
    await writeFile(file, 'old\n')
    await symlink(file, link)
    await writeConfigFile(link, 'new\n')
    expect((await lstat(link)).isSymbolicLink()).toBe(true)
    expect(await readFile(file, 'utf8')).toBe('new\n')
  })

  test('says why a file is not the gateway’s to write, and changes nothing', async () => {
    const path = await directory()
    expect(writeConfigFile(join(path, 'none', 'gatehouse.yaml'), 'x')).rejects.toThrow(
      `is not the gateway's to write: there is no directory ${join(path, 'none')}`,
    )
    const taken = join(path, 'gatehouse.yaml')
    await mkdir(taken)
    await expect(writeConfigFile(taken, 'x')).rejects.toThrow("is not the gateway's to write")
    expect(await readdir(path)).toEqual(['gatehouse.yaml'])
  })
})
