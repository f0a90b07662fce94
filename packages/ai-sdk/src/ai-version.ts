/** Rejects an `ai` package that cannot use the models of this one: its own error names the wrong version. */
import { InvalidArgumentError } from '@ai-sdk/provider'

/** The first major version of `ai` that uses models of specification v4. */
const FIRST_MAJOR = 7

type Require = (name: string) => unknown
type NodeModule = { createRequire(from: string): Require }
type Runtime = { process?: { getBuiltinModule?(name: string): NodeModule | undefined } }

/**
 * Throws InvalidArgumentError if the `ai` installed beside this package is too old. Without a place in a file system, as in
 * a bundle or a browser, nothing is checked.
 */
export function assertAiVersion(): void {
  const version = installedVersion()
  if (version === undefined || Number.parseInt(version, 10) >= FIRST_MAJOR) return
  const reason = `@gatehouse/ai-sdk works with ai ${FIRST_MAJOR} or later; ai ${version} is installed.`
  // `ai` 7 declares Node 22, and npm prefers a version whose declaration fits.
  const remedy = `Run: npm install ai@${FIRST_MAJOR} (on Node 20 npm may choose ai 6 unless the version is named).`
  throw new InvalidArgumentError({ argument: 'ai', message: `${reason} ${remedy}` })
}

function installedVersion(): string | undefined {
  try {
    const { process } = globalThis as Runtime
    const found = process?.getBuiltinModule?.('node:module')?.createRequire(import.meta.url)('ai/package.json')
    const { version } = (found ?? {}) as { version?: unknown }
    return typeof version === 'string' && /^\d+\./.test(version) ? version : undefined
  } catch {
    return undefined // `ai` is not installed, or this module is not a file.
  }
}
