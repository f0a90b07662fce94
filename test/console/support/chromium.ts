/** Real Chromium for the tests of the console: the one of the system, in one process for a console. */
import { afterEach, describe, setDefaultTimeout } from 'bun:test'
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import { closePages } from './watched.ts'

/** The first is Chromium without its windows, and needs half the time of the second. */
const PATHS = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]
const path = process.env.GATEHOUSE_CHROMIUM ?? PATHS.find((one) => existsSync(one))

/** Of one wait within a test. It ends before the test does: its error says what was waited for. */
export const WAIT_MILLISECONDS = 60_000
/** Of a test or a hook in a browser, on a machine that is much slower than usual. */
const TEST_MILLISECONDS = 300_000

/** Runs its tests where there is a Chromium, and says why it does not otherwise. What goes wrong in a page fails its test. */
export function describeInBrowser(title: string, tests: () => void): void {
  if (path === undefined) {
    describe.skip(`${title} (skipped: no Chromium in ${PATHS.join(', ')}; GATEHOUSE_CHROMIUM names another)`, tests)
    return
  }
  setDefaultTimeout(TEST_MILLISECONDS)
  describe(title, () => {
    afterEach(closePages)
    tests()
  })
}

export const launchChromium = (): Promise<Browser> =>
  chromium.launch({
    executablePath: path ?? '',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
    timeout: WAIT_MILLISECONDS,
  })
