/** `system_instruction` is `systemInstruction`; a name without underscores is the very same. */
export const camelCase = (name: string): string =>
  name.includes('_') ? name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()) : name
