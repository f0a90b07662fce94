/** Applies a text of the configuration: checked, written, audited and recorded in the history. */
import { ConfigError, problemText } from '../../config/check/problem.ts'
import type { ConfigSource, Proposal } from '../../config/edit/source.ts'
import { readTextFile } from '../../config/load/load.ts'
import type { Context } from '../../http/context.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import type { Audit } from '../audit/audit.ts'
import { type ConfigHistory, versionOf } from '../config-history.ts'
import { originOf } from './edit.ts'

export type ApplyParts = {
  source: Pick<ConfigSource, 'path' | 'diff' | 'apply'> & {
    /** As `diff`, without blocking for a large text. */
    check(text: string): Promise<Proposal>
  }
  audit: Pick<Audit, 'around'>
  history: ConfigHistory
}

/**
 * Throws ConfigError with the problems of the text, precondition_failed where the file has another version than `base`
 * by then, and permission_denied where the file cannot be written.
 */
export function configApply({ source, audit, history }: ApplyParts) {
  return async (text: string, context: Context, base?: string) => {
    const assertBase = () => {
      if (base !== undefined && base !== versionOf(readTextFile(source.path))) throw changedFile()
    }
    try {
      const checked = await source.check(text)
      const { changes } = checked
      const what = { action: 'configuration.apply', object_type: 'configuration', object_id: source.path }
      return await audit.around({ ...originOf(context), ...what, after: { changes } }, async () => {
        const applied = { file: source.path, ...(await source.apply(text, checked, assertBase)) }
        if (applied.written) await history.record({ actor: context.admin.actor, changes: applied.changes })
        return { result: applied, after: { written: applied.written, changes: applied.changes } }
      })
    } catch (error) {
      if (error instanceof ConfigError || error instanceof GatewayError) throw error
      throw new GatewayError('permission_denied', (error as Error).message, { cause: error })
    }
  }
}

export const changedFile = () =>
  new GatewayError('precondition_failed', 'The file was changed since you read it: read or compare it again.', {
    param: 'base',
  })

const MOST_PROBLEMS = 10

/** What `make` returns. Throws the error of the API with the first problems of a text, in place of a ConfigError. */
export async function withProblems<Result>(make: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await make()
  } catch (error) {
    throw error instanceof ConfigError ? invalidText(error) : error
  }
}

function invalidText({ problems }: ConfigError): GatewayError {
  const shown = problems.slice(0, MOST_PROBLEMS).map((problem) => problemText({ ...problem, file: 'text' }))
  return invalidValue('text', `The configuration is not valid: ${shown.join('; ')}`)
}
