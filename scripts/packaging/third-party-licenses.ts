/** Writes THIRD_PARTY_LICENSES: each package that Gatehouse is made of, with its licence and the text of that. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type LockedPackage, readLocked } from './locked-packages.ts'
import { ROOT } from './program.ts'

const LICENCE_FILE = /^(licen[sc]e|copying|notice|third.?party)/i
const LINE = `\n${'='.repeat(78)}\n\n`

/** Of packages that name it and have no file. */
const MIT = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`
const RUNTIME = `The runtime inside of the executable, Bun, is under the MIT licence. It links JavaScriptCore and other parts of WebKit,
which are under the LGPL 2.1, and more libraries under their own licences; https://bun.com/docs/project/licensing lists
them and says where their sources are and how to link it again. It is unchanged.
`

/** `ofSystems`: the systems' own packages that are inside, such as @napi-rs/canvas-linux-x64-gnu; others are left out. */
export function thirdPartyLicenses(ofSystems: ReadonlySet<string>): string {
  const packages = readLocked().packages.filter(
    ({ name, isOfSystem }) => !isOfSystem || ofSystems.has(name) || name === 'bun',
  )
  /** Many packages share one text. */
  const byText = new Map<string, string[]>()
  const without: string[] = []
  for (const one of packages) {
    const label = `${one.name} ${one.version} (${one.license})`
    const text = licenceTextOf(one)
    if (text === undefined) without.push(`${label}${authorOf(one)}`)
    else byText.set(text, [...(byText.get(text) ?? []), label])
  }
  const list = (labels: string[]) => [...new Set(labels)].sort().join('\n')
  return [
    `Gatehouse is under the Apache License 2.0 (LICENSE). It is made of these packages, unchanged.\n\n${RUNTIME}`,
    ...[...byText].map(([text, labels]) => `${list(labels)}\n\n${text}\n`).sort(),
    `These packages name their licence and have no file of it. The texts of Apache-2.0 (LICENSE) and MIT (below) are theirs.\n\n${list(without)}\n\n${MIT}`,
  ].join(LINE)
}

function licenceTextOf({ path, name }: LockedPackage): string | undefined {
  const directory = join(ROOT, path)
  if (!existsSync(directory)) return undefined
  const files = readdirSync(directory, { withFileTypes: true }).filter(
    (one) => one.isFile() && LICENCE_FILE.test(one.name),
  )
  const texts = files.map((file) => readFileSync(join(directory, file.name), 'utf8').replaceAll('\r\n', '\n').trim())
  return texts.length > 0 && name !== 'bun' ? texts.sort().join('\n\n') : undefined
}

function authorOf({ path }: LockedPackage): string {
  const file = join(ROOT, path, 'package.json')
  if (!existsSync(file)) return ''
  const { author } = JSON.parse(readFileSync(file, 'utf8')) as { author?: string | { name?: string } }
  const name = typeof author === 'string' ? author : author?.name
  return name ? `, by ${name}` : ''
}
