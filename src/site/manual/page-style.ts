/** The look of every page of the gateway: colours, text and icon, shared by the manual and the home page. */
import { escapeHtml } from '../../kit/markdown.ts'

/** Colours and text of every page, in a light and a dark scheme. */
export const BASE_STYLE = `
  :root { color-scheme: light dark; --ink: #1c2430; --paper: #fbfaf7; --soft: #5c6675; --line: #dcd8cf; --accent: #0b6e69; --code: #f1eee7 }
  @media (prefers-color-scheme: dark) {
    :root { --ink: #e8e6e1; --paper: #14181d; --soft: #9aa5b1; --line: #2b323a; --accent: #5cc8bf; --code: #1c2229 }
  }
  * { box-sizing: border-box }
  body { margin: 0; background: var(--paper); color: var(--ink); font: 17px/1.6 ui-sans-serif, system-ui, sans-serif }
  img { max-width: 100%; height: auto; border: 1px solid var(--line); border-radius: .5rem }
  pre { background: var(--code); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; overflow-x: auto; font: 14px/1.55 ui-monospace, monospace }
  code { font-family: ui-monospace, monospace; font-size: .92em }
  pre code { font-size: 1em }
  table { border-collapse: collapse; width: 100%; font-size: .97rem }
  td { border-top: 1px solid var(--line); padding: .5rem .75rem .5rem 0; vertical-align: top }
  footer { margin-top: 3rem; color: var(--soft); font-size: .9rem }
`

/** The icon as a data URI, since browsers otherwise request /favicon.ico. */
const ICON =
  '<link rel="icon" href="data:image/svg+xml,' +
  '%3Csvg xmlns=%27http://www.w3.org/2000/svg%27 viewBox=%270 0 16 16%27%3E' +
  '%3Cpath fill=%27%230b6e69%27 d=%27M2 15V7a6 6 0 0 1 12 0v8h-3V8a3 3 0 0 0-6 0v7z%27/%3E%3C/svg%3E">'

/** The head of every page. `style`: of its own. */
export const headOf = (title: string, style = ''): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
${ICON}
${style === '' ? '' : `<style>${style}</style>\n`}</head>`
