import { describe, expect, it } from 'bun:test'
import { prefersType } from './accept.ts'

describe('prefersType', () => {
  it.each([
    'text/html',
    'Text/HTML;q=0.1',
    'text/html, application/json',
    'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
    'application/json;q=0.5, text/html; charset=utf-8; q=0.5',
  ])('is true of HTML for %p', (accept) => expect(prefersType(accept, 'text/html', 'application/json')).toBe(true))

  it.each([
    null,
    '',
    '*/*',
    'text/*',
    'application/json',
    'text/html;q=0',
    'text/html;q=0.0, */*',
    'text/html;q=0.4, application/json',
    'text/html;q=0.4, application/*;q=0.5',
    'text/html;q=0.4, */*',
    'text/html;q=none',
    'text/htmlx',
  ])('is false of HTML for %p', (accept) => expect(prefersType(accept, 'text/html', 'application/json')).toBe(false))
})
