/** A real nginx for the tests, where it is installed. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** It is in /usr/sbin, which is not on the path of every user. */
export const NGINX = Bun.which('nginx', { PATH: `${process.env.PATH ?? ''}:/usr/sbin:/usr/local/sbin` })
/** Debian: `apt-get install nginx-light`. */
if (NGINX === null) process.stderr.write('Tests that need nginx are skipped: it is not installed.\n')

/** The sample that we ship, before these gateways. */
export function bySample(gateways: readonly number[], port: number): string {
  const [first = ''] = /^ *server 127\.0\.0\.1:8787.*\n/m.exec(SAMPLE) ?? []
  return SAMPLE.replace(/^ *server 127\.0\.0\.1:8788.*\n/m, '')
    .replace(first, gateways.map((one) => first.replace('8787', String(one))).join(''))
    .replace('listen 8080', `listen 127.0.0.1:${port}`)
}
const SAMPLE = readFileSync(join(import.meta.dir, '../../deploy/nginx/gatehouse.conf'), 'utf8')

export type Nginx = {
  url: string
  /** What it has logged besides refused connections, which it repeats elsewhere. */
  errors(): Promise<string[]>
  stop(): Promise<void>
}

/** `http`: what stands within `http { ... }` besides; it listens on this port. */
export async function startNginx(http: string, port: number): Promise<Nginx> {
  if (NGINX === null) throw new Error('nginx is not installed.')
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-nginx-'))
  mkdirSync(join(directory, 'temp'))
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const text = `
    daemon off;
    master_process off;
    pid ${directory}/pid;
    error_log ${directory}/errors;
    events {}
    http {
      access_log off;
      ${paths.map((name) => `${name}_temp_path ${directory}/temp/${name};`).join('\n')}
      ${http}
    }`
  writeFileSync(join(directory, 'nginx.conf'), text)
  const child = Bun.spawn([NGINX, '-p', directory, '-c', join(directory, 'nginx.conf')], {
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const url = `http://127.0.0.1:${port}`
  const isUp = () =>
    fetch(url, { keepalive: false }).then(
      () => true,
      () => false,
    )
  while (!(await isUp())) {
    if (child.exitCode !== null) throw new Error(`nginx ended: ${await new Response(child.stderr).text()}`)
  }
  return {
    url,
    errors: async () =>
      (await Bun.file(join(directory, 'errors')).text())
        .split('\n')
        .filter((line) => line !== '' && !line.includes('Connection refused')),
    async stop() {
      child.kill('SIGTERM')
      await child.exited
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
