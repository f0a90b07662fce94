/** The files of peers: each is read, and has all that a run fills in. */
import { expect, it } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { preparePeer, readPeerFile } from './peers/peer.ts'

const PEERS = join(import.meta.dir, 'peers')
const files = readdirSync(PEERS).filter((name) => name.endsWith('.json'))

it.each(files)('prepares the peer of %s for the ports of a run', (name) => {
  const home = mkdtempSync(join(tmpdir(), 'gatehouse-peer-'))
  try {
    const file = readPeerFile(join(PEERS, name))
    expect(file.build).toBeDefined()
    const peer = preparePeer(file, { vendor: 1111, conformance: 2222 }, home)
    const [directory] = readdirSync(home)
    const texts = Object.keys(file.files ?? {}).map((each) => readFileSync(join(home, directory ?? '', each), 'utf8'))
    const filled = [...texts, ...Object.values(file.env ?? {})].join('\n').replaceAll('{vendor}', '1111')
    expect(filled).toContain('1111')
    expect(texts.join('\n')).not.toMatch(/\{(port|port2|dir|vendor|conformance)\}/)
    expect(peer.target('whole', false).url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1\/chat\/completions$/)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})
