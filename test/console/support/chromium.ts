/** Real Chromium for the tests of the console: the one of the system, in one process for a test file. */
import { describe } from 'bun:test'
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

const PATHS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const path = process.env.GATEHOUSE_CHROMIUM ?? PATHS.find((one) => existsSync(one))

/** Runs its tests where there is a Chromium, and says why it does not otherwise. */
export function describeInBrowser(title: string, tests: () => void): void {
  if (path !== undefined) describe(title, tests)
  else describe.skip(`${title} (skipped: no Chromium in ${PATHS.join(', ')}; GATEHOUSE_CHROMIUM names another)`, tests)
}

export const launchChromium = (): Promise<Browser> =>
  chromium.launch({ executablePath: path ?? '', args: ['--no-sandbox', '--disable-dev-shm-usage'] })
