/** A PostgreSQL with pgvector for the tests: PGlite, which is installed apart, behind a socket. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const MODULES = join(import.meta.dir, '../pgvector/node_modules/@electric-sql')
/** `npm ci --prefix test/pgvector` */
export const hasPgvector = existsSync(MODULES)
if (!hasPgvector) process.stderr.write('Tests that need pgvector are skipped: run npm ci --prefix test/pgvector.\n')

type Pglite = { close(): Promise<void>; query(text: string): Promise<{ rows: Record<string, unknown>[] }> }
type SocketServer = { start(): Promise<void>; stop(): Promise<void>; getServerConn(): string }
type Packages = {
  PGlite: { create(options: { extensions: object }): Promise<Pglite> }
  PGLiteSocketServer: new (options: { db: Pglite; host: string; port: number; maxConnections: number }) => SocketServer
  vector: object
}

export type PgvectorServer = {
  url: string
  query(text: string): Promise<Record<string, unknown>[]>
  stop(): Promise<void>
}

export async function startPgvector(): Promise<PgvectorServer> {
  const load = (name: string): Promise<Packages> => import(join(MODULES, name, 'dist/index.js'))
  const [{ PGlite }, { vector }, { PGLiteSocketServer }] = await Promise.all([
    load('pglite'),
    load('pglite-pgvector'),
    load('pglite-socket'),
  ])
  const db = await PGlite.create({ extensions: { vector } })
  // More than the pools of two gateways.
  const server = new PGLiteSocketServer({ db, host: '127.0.0.1', port: 0, maxConnections: 100 })
  await server.start()
  const address = server.getServerConn()
  return {
    url: `postgres://postgres:postgres@${address}/postgres`,
    query: async (text) => (await db.query(text)).rows,
    async stop() {
      await server.stop()
      await db.close()
    },
  }
}
