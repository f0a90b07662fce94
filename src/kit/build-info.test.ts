import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readBuild } from './build-info.ts'

const COMMITTED = '2026-02-28T23:30:00-05:00'
let root: string

function git(...args: string[]): string {
  const author = ['-c', 'user.name=a', '-c', 'user.email=a@example.com', '-c', 'commit.gpgsign=false']
  const env = { PATH: process.env.PATH, GIT_AUTHOR_DATE: COMMITTED, GIT_COMMITTER_DATE: COMMITTED }
  return execFileSync('git', ['-C', root, ...author, ...args], { env, encoding: 'utf8' })
}

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'gatehouse-build-'))
})
afterAll(() => rmSync(root, { recursive: true }))

describe('readBuild', () => {
  it('is undefined outside of a repository, and before its first commit', async () => {
    expect(await readBuild(root)).toBeUndefined()
    git('init', '--quiet')
    expect(await readBuild(root)).toBeUndefined()
  })

  it('names the commit and its day in UTC', async () => {
    writeFileSync(join(root, 'a.txt'), 'one\n')
    git('add', '.')
    git('commit', '--quiet', '-m', 'one')
    expect(await readBuild(root)).toEqual({
      commit: git('rev-parse', '--short', 'HEAD').trim(),
      date: '2026-03-01',
    })
  })

  it('marks a commit whose files were changed since, and no new file', async () => {
    const clean = (await readBuild(root))?.commit
    writeFileSync(join(root, 'new.txt'), 'new\n')
    expect((await readBuild(root))?.commit).toBe(clean ?? '')
    writeFileSync(join(root, 'a.txt'), 'two\n')
    expect((await readBuild(root))?.commit).toBe(`${clean}-dirty`)
  })

  it('is undefined in a directory of another repository', async () => {
    mkdirSync(join(root, 'node_modules/gatehouse'), { recursive: true })
    expect(await readBuild(join(root, 'node_modules/gatehouse'))).toBeUndefined()
  })
})
