/** Reads the manual: the sandbox answers questions from it, and the gateway serves it under /manual. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { resourceDirectory } from '../../kit/resources.ts'

export type ManualFile = {
  /** The page's base name without `.md`; no two pages have the same one. */
  name: string
  /** The folder of the page inside the manual, such as `how-to`; empty at the top. */
  folder: string
  text: string
}

/** All pages in the order of their names, without the index (README.md); none if the manual is not installed. */
export async function loadManual(directory = resourceDirectory('manual')): Promise<ManualFile[]> {
  const paths = await readdir(directory, { recursive: true }).catch(() => [])
  const pages = paths.map((path) => path.replaceAll('\\', '/')).flatMap((path) => pageAt(path))
  pages.sort((one, other) => (one.name < other.name ? -1 : 1))
  return Promise.all(
    pages.map(async ({ path, ...page }) => ({ ...page, text: await readFile(join(directory, path), 'utf8') })),
  )
}

function pageAt(path: string) {
  const [, folder = '', name = ''] = /^(?:(.*)\/)?([^/]+)\.md$/.exec(path) ?? []
  return name && name !== 'README' ? [{ path, folder, name }] : []
}

/** A picture of the manual; undefined: there is none of this name. */
export async function loadImage(name: string): Promise<Buffer<ArrayBuffer> | undefined> {
  if (!/^[\w-]+\.png$/.test(name)) return undefined
  return readFile(join(resourceDirectory('manual'), 'images', name)).catch(() => undefined)
}
