/**
 * `npm run build`, and the end of an installation: makes `dist/gatehouse`, which `bin/gatehouse` starts while it is newer
 * than all it was made of, in half the time that the sources take. Beside it, `dist/console`, the web console.
 */
import { copyFileSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { buildForCheckout } from './build-binary.ts'
import { buildConsole } from './build-console.ts'
import { ROOT } from './packaging/program.ts'

const started_at = new Date()
await buildConsole()
// A source that was edited since the build began is newer.
utimesSync(await buildForCheckout(), started_at, started_at)
copyFileSync(join(ROOT, 'package.json'), join(ROOT, 'dist/package.json'))
