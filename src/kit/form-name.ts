/** Escapes a name inside the quotes of a form part, as browsers do (WHATWG HTML, section 4.10.21.8). */
export const formName = (name: string): string => name.replaceAll(/[\r\n"]/g, (sign) => encodeURIComponent(sign))
