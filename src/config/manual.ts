/** Reads the project's manual, which the sandbox answers questions from. */
import { readdir, readFile } from 'node:fs/promises'

const DIRECTORY = new URL('../../docs/manual/', import.meta.url)

/** Its pages by name (without `.md`), in the order of their names; none where the manual is not installed. */
export async function loadManual(directory: URL = DIRECTORY): Promise<{ name: string; text: string }[]> {
  const names = await readdir(directory).catch(() => [])
  const pages = names.filter((name) => name.endsWith('.md')).sort()
  return Promise.all(
    pages.map(async (page) => ({ name: page.slice(0, -3), text: await readFile(new URL(page, directory), 'utf8') })),
  )
}
