import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manualClock } from '../../test/kit/clock.ts'
import { createLog } from '../kit/log.ts'
import { openStore } from '../store/open-store.ts'
import { createConfigHistory } from './config-history.ts'

test('a configuration that is the last one is not written again', async () => {
  const clock = manualClock()
  const store = await openStore({ url: 'sqlite::memory:' })
  let writes = 0
  const add: typeof store.configVersions.add = (version) => {
    writes++
    return store.configVersions.add(version)
  }
  const errors: string[] = []
  const log = createLog({ clock, level: 'error', pretty: false, write: (text) => errors.push(text) })
  const directory = mkdtempSync(join(tmpdir(), 'history-'))
  const file = join(directory, 'gatehouse.yaml')
  const history = createConfigHistory({ store: { ...store.configVersions, add }, file, clock, log })
  const record = () => history.record({ actor: 'gateway', changes: [] })
  const texts = ['server: { port: 1 }\n', 'server: { port: 1 }\n', 'server: { port: 2 }\n', 'server: { port: 1 }\n']
  for (const text of texts) {
    writeFileSync(file, text)
    await record()
    clock.advance(1000)
  }
  expect(writes).toBe(3)
  expect((await store.configVersions.page({ limit: 10 })).rows).toHaveLength(3)
  expect(errors).toEqual([])
  await store.close()
  rmSync(directory, { recursive: true })
})
