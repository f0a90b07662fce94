/** The table in docs/licences.md names every installed package whose licence is not a permissive one. */
import { expect, it } from 'bun:test'
import lock from '../package-lock.json' with { type: 'json' }

type Locked = { license?: string; link?: boolean; dev?: boolean }

const PERMISSIVE = /^(MIT|MIT-0|ISC|0BSD|BSD-[23]-Clause|Apache-2\.0|CC0-1\.0|Unlicense|BlueOak-1\.0\.0)$/

/** A package with a choice of licences is permissive if one of them is. */
const isPermissive = (license: string): boolean =>
  license
    .replace(/[()]/g, '')
    .split(' OR ')
    .some((one) => PERMISSIVE.test(one))

function installed(): [name: string, license: string][] {
  return Object.entries(lock.packages as Record<string, Locked>)
    .filter(([path, { link, dev }]) => path.includes('node_modules/') && !link && !dev)
    .map(([path, { license }]) => [path.slice(path.lastIndexOf('node_modules/') + 13), license ?? 'none'])
}

it('names each package of a licence that is not permissive, with its licence', async () => {
  const page = await Bun.file(new URL('../docs/licences.md', import.meta.url)).text()
  const named = [...page.matchAll(/^\| `(.+?)` \| (\S+) \|/gm)].map(([, name, license]) => [name, license])
  const others = installed().filter(([, license]) => !isPermissive(license))
  expect(named).toEqual(others.sort() as string[][])
  expect(others.length).toBeGreaterThan(0)
})

it('takes a choice of licences by its most permissive one, and an unknown licence as not permissive', () => {
  expect(
    ['MIT OR Apache-2.0', '(AFL-2.1 OR BSD-3-Clause)', 'MPL-2.0', 'MIT AND MPL-2.0', 'none'].map(isPermissive),
  ).toEqual([true, true, false, false, false])
})
