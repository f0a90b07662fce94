/** Checks that no text of a page became a part of it. */
import type { Page } from 'playwright-core'

/** What of the payloads became part of the page: elements, handlers, addresses that are code, or code that ran. */
export const injectedInto = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const found: string[] = []
    if ((window as unknown as { ran?: number }).ran) found.push('code ran')
    const elements = 'script, iframe, object, embed, base, style, math, marquee, img[src="x"], audio'
    for (const one of document.querySelectorAll(`body :is(${elements})`)) found.push(one.outerHTML.slice(0, 120))
    for (const one of document.querySelectorAll('body *'))
      for (const { name, value } of one.attributes) {
        if (/^on/i.test(name)) found.push(`${one.tagName} ${name}`)
        const isAddress = /^(href|src|action|formaction|data|xlink:href)$/i.test(name)
        if (isAddress && !/^(\/|#|https?:\/\/127\.0\.0\.1|data:image\/)/i.test(value)) found.push(`${name}=${value}`)
        if (isAddress && value.startsWith('//')) found.push(`${name}=${value}`)
      }
    return found
  })
