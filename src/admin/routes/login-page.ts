/** The page that a login link opens. The secret is in the fragment of the address, which a browser does not send. */
import { createHash } from 'node:crypto'

/** A click is needed: a program that follows links in messages must not use the link up. */
const SCRIPT = `
const text = document.querySelector('p')
const button = document.querySelector('button')
const link = location.hash.slice(1)
history.replaceState(null, '', location.pathname)
if (link === '') { text.textContent = 'This address needs the whole link that gatehouse admin login has printed.'; button.hidden = true }
button.addEventListener('click', async () => {
  button.disabled = true
  const response = await fetch('/admin/v1/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-gatehouse-csrf': '1' },
    body: JSON.stringify({ link }),
  })
  if (response.ok) return location.replace('/console')
  button.hidden = true
  const body = await response.json()
  text.textContent = 'The login failed: ' + body.error.message
})
`
const STYLE = 'body{font:1rem/1.5 system-ui,sans-serif;max-width:30rem;margin:4rem auto;padding:0 1rem}'

export const LOGIN_PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Gatehouse: log in</title>
<style>${STYLE}</style>
<h1>Gatehouse</h1>
<p>Log in as administrator of this gateway. The console opens after it.</p>
<button>Log in</button>
<script>${SCRIPT}</script>
</html>
`

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

const LOGIN_PAGE_POLICY = `default-src 'none'; script-src ${hashOf(SCRIPT)}; style-src ${hashOf(STYLE)}; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`

export const LOGIN_PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': LOGIN_PAGE_POLICY,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}
