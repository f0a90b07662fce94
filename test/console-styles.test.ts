/** The style sheets of the console: all are one sheet in the browser, so a class has one meaning and one place. */
import { expect, it } from 'bun:test'
import { basename, join } from 'node:path'
import { Glob } from 'bun'

const SOURCE = join(import.meta.dir, '../console/src')
const sheets = [...new Glob('**/*.css').scanSync(SOURCE)].sort()

/** The classes that a sheet gives a look of their own: a rule with nothing before them, as `.card` and `.card:hover`. */
function definedIn(css: string): Set<string> {
  const plain = css.replaceAll(/\/\*[\s\S]*?\*\//g, '')
  const selectors = [...plain.matchAll(/([^{}]+)\{/g)].flatMap(([, list = '']) => splitList(list.trim()))
  return new Set(
    selectors.flatMap((selector) => /^\.([\w-]+)(?:[:[](?:\([^)]*\)|[^ >+~(])*)?$/.exec(selector.trim())?.[1] ?? []),
  )
}

/** At the commas outside of parentheses. */
const splitList = (list: string): string[] => list.split(/,(?![^(]*\))/)

it('define each class in one sheet', async () => {
  const places = new Map<string, string[]>()
  for (const sheet of sheets)
    for (const name of definedIn(await Bun.file(join(SOURCE, sheet)).text()))
      places.set(name, [...(places.get(name) ?? []), basename(sheet)])
  const twice = [...places].filter(([, sheets]) => sheets.length > 1)
  expect(Object.fromEntries(twice)).toEqual({})
})

it('finds a class that has a rule of its own, and none that is only seen within another', () => {
  const css =
    '/* .no {} */ .a, .b:is(x, y):hover { } .c[data-x] .d { } @media (width > 1px) { .e { } } .f > .g { } p { }'
  expect([...definedIn(css)].sort()).toEqual(['a', 'b', 'e'])
})
