import { afterEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectionsHint } from './connections-hint.ts'

describe('the hint about connections that are being opened', () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-hint-'))
  const path = join(directory, 'tcp_migrate_req')
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  it('is given only where the system could pass them on and does not', () => {
    writeFileSync(path, '0\n')
    expect(connectionsHint(path)?.what).toStartWith('net.ipv4.tcp_migrate_req is off')
    writeFileSync(path, '1\n')
    expect(connectionsHint(path)).toBeUndefined()
    expect(connectionsHint(join(directory, 'none'))).toBeUndefined()
  })
})
