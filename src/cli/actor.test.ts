import { expect, test } from 'bun:test'

test('the user is named by a number where the runtime knows no name', () => {
  const script = "console.log((await import('./actor.ts')).commandLineActor().actor)"
  const { stdout } = Bun.spawnSync([process.execPath, '-e', script], { cwd: import.meta.dir, env: {} })
  expect(stdout.toString()).toBe(`cli:${process.getuid?.()}\n`)
})
