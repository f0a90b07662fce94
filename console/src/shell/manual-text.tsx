/** Shows a page of the manual as elements of the console: only those of this list, without their styles and scripts. */
import { createElement, type ReactNode } from 'react'

/** Elements without attributes of their own. */
const PLAIN = new Set('p ul ol li strong em del code table thead tbody tr th td blockquote h2 h3 h4 br hr'.split(' '))

type Parts = { /** Opens another page of the manual in the place of this one. */ onPage(name: string): void }

/** The contents of the page's `<main>`; the first heading is one of the panel. */
export function manualContent(html: string, parts: Parts): ReactNode {
  // The styles of the page outside of it are never read: the policy of the console forbids them.
  const [, main = ''] = /<main>([\s\S]*)<\/main>/.exec(html) ?? []
  return childrenOf(new DOMParser().parseFromString(main, 'text/html').body, parts)
}

const childrenOf = (element: Element, parts: Parts): ReactNode[] =>
  [...element.childNodes].map((node, index) => nodeOf(node, index, parts))

function nodeOf(node: ChildNode, key: number, parts: Parts): ReactNode {
  if (node.nodeType === Node.TEXT_NODE) return node.textContent
  if (!(node instanceof Element) || node.classList.contains('anchor')) return null
  const name = node.localName
  if (name === 'h1') return createElement('h2', { key, id: 'manual-title' }, ...childrenOf(node, parts))
  if (name === 'h2') return createElement('h3', { key }, ...childrenOf(node, parts))
  // What scrolls can be scrolled by keyboard.
  if (name === 'pre') return createElement(name, { key, tabIndex: 0 }, ...childrenOf(node, parts))
  if (PLAIN.has(name)) return createElement(name, { key }, ...childrenOf(node, parts))
  if (name === 'img') return pictureOf(node, key)
  if (name === 'a') return linkOf(node, key, parts)
  if (name === 'script' || name === 'style' || name === 'button') return null
  return createElement('div', { key }, ...childrenOf(node, parts))
}

function pictureOf(node: Element, key: number): ReactNode {
  const source = node.getAttribute('src') ?? ''
  if (!source.startsWith('/manual/images/')) return null
  return (
    <a key={key} href={source} target="_blank" rel="noreferrer noopener">
      <img src={source} alt={node.getAttribute('alt') ?? ''} loading="lazy" />
    </a>
  )
}

function linkOf(node: Element, key: number, parts: Parts): ReactNode {
  const address = node.getAttribute('href') ?? ''
  const content = childrenOf(node, parts)
  const [, page] = /^\/manual\/([\w-]+)(?:#.*)?$/.exec(address) ?? []
  if (page)
    return (
      <button key={key} type="button" className="manual-link" onClick={() => parts.onPage(page)}>
        {content}
      </button>
    )
  if (!/^(https?:\/\/|\/(?!\/))/.test(address)) return <span key={key}>{content}</span>
  return (
    <a key={key} href={address} target="_blank" rel="noreferrer noopener">
      {content}
    </a>
  )
}
