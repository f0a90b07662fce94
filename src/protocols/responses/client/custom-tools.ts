/** Converts custom tools, which take free text, to functions with one text argument, and their calls back. */
import type { FunctionTool } from '../../../spec/chat-request.ts'
import type { ClientTool } from './schema.ts'

export function customFunction(
  { format }: ClientTool,
  { name, description }: { name: string; description: string | undefined },
): FunctionTool {
  // Only the original vendor can enforce a grammar. Other models are asked to follow it.
  const rule =
    format?.type === 'grammar' && format.definition !== undefined
      ? `The input must follow this grammar (${format.syntax ?? 'lark'}):\n${format.definition}`
      : undefined
  const fullDescription = [description, rule].filter((text) => text !== undefined && text !== '').join('\n\n')
  return {
    type: 'function',
    function: {
      name,
      ...(fullDescription === '' ? {} : { description: fullDescription }),
      parameters: {
        type: 'object',
        properties: { input: { type: 'string', description: 'The whole input, as plain text.' } },
        required: ['input'],
        additionalProperties: false,
      },
    },
  }
}

/** The text in a call's arguments. If a model did not produce JSON, all of its text. */
export function freeText(text: string): string {
  try {
    const { input } = JSON.parse(text) as { input?: unknown }
    return typeof input === 'string' ? input : text
  } catch {
    return text
  }
}

export const argumentsOf = (input: string): string => JSON.stringify({ input })
