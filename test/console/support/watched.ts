/**
 * The pages that a test has opened: what goes wrong in one fails the test, be it an error in the browser's console, a
 * request that fails, or a report of the content security policy. Pages are closed at the end of their test.
 */
import type { Page } from 'playwright-core'

export type ConsolePage = Page & {
  /** What went wrong in it so far, besides what is allowed. */
  faults(): string[]
}

const open: ConsolePage[] = []

/** The page, watched from now on. `allowed`: faults that the test expects. */
export function watched(page: Page, allowed: RegExp | undefined): ConsolePage {
  const faults: string[] = []
  const note = (fault: string) => {
    if (!allowed?.test(fault)) faults.push(fault)
  }
  page.on('console', (message) => {
    // Such a message has no address; the response is noted with it.
    const isOfResponse = message.text().startsWith('Failed to load resource')
    if (message.type() === 'error' && !isOfResponse) note(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => note(`error: ${error.message}`))
  page.on('response', (response) => {
    const { pathname, search } = new URL(response.url())
    if (response.status() >= 400) note(`${response.request().method()} ${pathname}${search} ${response.status()}`)
  })
  page.on('requestfailed', (request) => {
    // A request of a page that is left is given up, and so is one whose answer nobody waits for any more.
    const text = request.failure()?.errorText
    if (text !== 'net::ERR_ABORTED') note(`${request.method()} ${request.url()} ${text}`)
  })
  page.on('request', (request) => {
    const { hostname, protocol } = new URL(request.url())
    if (protocol.startsWith('http') && hostname !== '127.0.0.1') note(`request to another host: ${request.url()}`)
  })
  const watchedPage = Object.assign(page, { faults: () => faults })
  open.push(watchedPage)
  return watchedPage
}

/** Closes the pages of a test. Throws for what went wrong in them. */
export async function closePages(): Promise<void> {
  const pages = open.splice(0)
  const faults = pages.flatMap((page) => page.faults())
  // The page of a browser that has crashed cannot be closed.
  await Promise.allSettled(pages.map((page) => page.context().close()))
  if (faults.length > 0) throw new Error(`the console's pages had faults:\n${faults.join('\n')}`)
}
