/** Languages of texts: what is certainly foreign, what is too short or no language, and a stream by its window. */
import { beforeAll, describe, expect, it } from 'bun:test'
import { type GuardConfig, LANGUAGES } from '../../config/schema/guard-schema.ts'
import type { Caller } from '../../spec/token.ts'
import { CallGuards } from './call-guards.ts'
import { createGuard } from './guard.ts'
import { foreignTo, loadDetector } from './languages.ts'
import { Blocked } from './text-filter.ts'

const TEXTS = {
  en: 'The server returned an error when I tried to log in. Our team needs a better way to track invoices.',
  de: 'Der Server hat beim Anmelden einen Fehler gemeldet. Unser Team braucht einen besseren Weg, Rechnungen zu finden.',
  fr: "Le serveur a renvoyé une erreur lors de la connexion. Notre équipe a besoin d'un meilleur moyen de les suivre.",
  es: 'El servidor devolvió un error cuando intenté iniciar sesión. Nuestro equipo necesita una mejor manera.',
  pt: 'O servidor devolveu um erro quando tentei entrar. Nossa equipe precisa de uma maneira melhor de acompanhar.',
  it: "Il server ha restituito un errore durante l'accesso. Il nostro gruppo ha bisogno di un modo migliore.",
  nl: 'De server gaf een fout toen ik probeerde in te loggen. Ons team heeft een betere manier nodig om te volgen.',
  pl: 'Serwer zwrócił błąd podczas logowania. Nasz zespół potrzebuje lepszego sposobu śledzenia tych faktur.',
  sv: 'Servern gav ett fel när jag försökte logga in. Vårt team behöver ett bättre sätt att följa alla fakturor.',
  da: 'Serveren gav en fejl, da jeg prøvede at logge ind. Vores team har brug for en bedre måde at følge dem på.',
  tr: 'Giriş yapmaya çalıştığımda sunucu bir hata verdi. Ekibimizin faturaları takip etmek için bir yola ihtiyacı var.',
  ru: 'Сервер вернул ошибку, когда я пытался войти. Нашей команде нужен лучший способ отслеживать счета.',
  uk: 'Сервер повернув помилку, коли я намагався увійти. Нашій команді потрібен кращий спосіб відстежувати рахунки.',
  zh: '我尝试登录时服务器返回了错误。我们的团队需要更好的方式来跟踪发票。因为会议取消了，他很早就离开了。',
  ja: 'ログインしようとしたらサーバーがエラーを返しました。私たちのチームには請求書を管理するより良い方法が必要です。',
  ar: 'أعاد الخادم خطأ عندما حاولت تسجيل الدخول. يحتاج فريقنا إلى طريقة أفضل لتتبع الفواتير.',
} as const
const CODES = Object.keys(TEXTS) as (keyof typeof TEXTS)[]
const isForeign = foreignTo(['en'])
const { de, en } = TEXTS

beforeAll(loadDetector)

describe('a text', () => {
  it('passes where its language is allowed, and else only where it is nearly the same language', () => {
    const passed = CODES.flatMap((allowed) => {
      const check = foreignTo([allowed])
      return CODES.filter((code) => !check(TEXTS[code])).map((code) => `${allowed} ${code}`)
    })
    const others = passed.filter((pair) => pair.slice(0, 2) !== pair.slice(3))
    expect(passed.length - others.length).toBe(CODES.length)
    expect(others.filter((pair) => !/^(da sv|sv da|ru uk|uk ru|es pt|pt es)$/.test(pair))).toEqual([])
  })

  it('passes where one of several languages is its own', () => {
    expect([foreignTo(['en', 'de'])(de), foreignTo(['en', 'fr'])(de)]).toEqual([false, true])
  })

  it('passes where another language is only a little more likely', () => {
    const swedish = 'Skriv en kort sammanfattning av kvartalsrapporten i dag'
    expect([foreignTo(['sv'])(swedish), foreignTo(['da'])(swedish), foreignTo(['de'])(swedish)]).toEqual([
      false,
      false,
      true,
    ])
  })

  it('is judged from 40 bytes of letters on', () => {
    const [short, long] = [
      'Rückgabe der Ware innerhalb von zwei Tagen',
      'Rückgabe der Ware innerhalb von zwei Wochen nur',
    ]
    expect([Buffer.byteLength(short.replaceAll(' ', '')), isForeign(short)]).toEqual([37, false])
    expect([Buffer.byteLength(long.replaceAll(' ', '')), isForeign(long)]).toEqual([41, true])
  })

  it.each([
    `\`\`\`\n${de}\n\`\`\`\nDone.`,
    `~~~\n${de}`,
    '`der Server hat beim Anmelden einen Fehler gemeldet`',
    'https://beispiel.de/der/Server/hat/beim/Anmelden/einen/Fehler/gemeldet',
    "SELECT id, name FROM users WHERE created_at > now() - interval '7 days' ORDER BY id DESC LIMIT 10;",
    '{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0.2}',
    "TypeError: Cannot read properties of undefined (reading 'map') at Object.<anonymous> (/app/src/index.js:10:5)",
    'git rebase -i HEAD~3 && npm run build && docker compose up -d --build',
    "The French word 'bonjour' means hello, and 'merci' means thank you.",
    'I ordered a crème brûlée and a cappuccino at Café de Flore, near Rue Saint-Benoît.',
    'aGVsbG8gd29ybGQgdGhpcyBpcyBhIHRlc3QgYWdhaW4gYW5kIGFnYWlu',
    '4711 0815 !!! ??? --- 100 % 50 €',
    '',
  ])('passes where it is code, an address, or its language is not certain: %s', (text) => {
    expect(isForeign(text)).toBe(false)
  })

  it('is judged by parts from all over it', () => {
    const long = (text: string, characters: number) => text.repeat(Math.ceil(characters / text.length))
    expect(isForeign(long(en, 200_000))).toBe(false)
    expect(isForeign(long(de, 200_000))).toBe(true)
    expect(isForeign(en + long(de, 200_000))).toBe(true)
    expect(isForeign(de + long(en, 200_000))).toBe(false)
    expect(isForeign(`\`\`\`${long(de, 100_000)}\`\`\`${en}`)).toBe(false)
    expect(isForeign('`'.repeat(200_000) + '='.repeat(200_000))).toBe(false)
  })

  it('may be in each language that the library knows, and in no other', async () => {
    const { eld } = await import('eld/extrasmall')
    expect(Object.values(eld.info().Languages).toSorted()).toEqual([...LANGUAGES].toSorted())
  })
})

describe('a streamed answer', () => {
  const filters = (config: Partial<GuardConfig> = {}) => {
    const call = { request_id: 'req_1', caller: {} as Caller, signal: new AbortController().signal }
    const guard = createGuard('g', { kind: 'limits', languages: ['en'], ...config })
    const guards = new CallGuards([guard], { call, ask: () => Promise.reject(new Error('not asked')), results: [] })
    return { guards, filter: guards.outputFilters() }
  }
  /** What was sent before it was blocked, piece by piece; and the most that was held back. */
  function send(text: string, size: number, filter = filters().filter(false)) {
    let [sent, held, isBlocked] = ['', 0, false]
    try {
      for (let at = 0; at < text.length; at += size) {
        sent += filter.push(text.slice(at, at + size))
        held = Math.max(held, Math.min(text.length, at + size) - sent.length)
      }
      sent += filter.end()
    } catch (thrown) {
      if (!(thrown instanceof Blocked)) throw thrown
      isBlocked = true
    }
    return { sent, held, isBlocked }
  }
  const code = `\`\`\`\n${`${de}\n`.repeat(20)}\`\`\`\n`

  it.each([1, 7, 199, 200, 5_000])(
    'passes whole in pieces of %d characters, and is held back by fewer than 200',
    (size) => {
      const text = `${`${en} `.repeat(20)}${code}${`${en} `.repeat(20)}`
      const { sent, held, isBlocked } = send(text, size)
      expect([sent === text, held < 200, isBlocked]).toEqual([true, true, false])
    },
  )

  it.each([1, 7, 199, 200, 5_000])('sends nothing of another language, in pieces of %d characters', (size) => {
    expect(send(de.repeat(10), size)).toMatchObject({ sent: '', isBlocked: true })
    expect(send(de, size)).toMatchObject({ sent: '', isBlocked: true })
  })

  it('ends where it goes on in another language, once most of the last 1,000 characters are', () => {
    const { sent, isBlocked } = send(`${en} `.repeat(30) + de.repeat(30), 20)
    expect([isBlocked, sent.length > en.length * 30, sent.length < en.length * 30 + 1_200]).toEqual([true, true, true])
  })

  it.each([1, 3, 20])('knows in pieces of %d characters where code begins and ends', (size) => {
    expect(send(`${en}\n${code}${en}`, size).isBlocked).toBe(false)
    expect(send(`${code}${code}${code}${de.repeat(10)}`, size).isBlocked).toBe(true)
    // The window is cut within the fence.
    expect(send(`${`${en} ${en}`.slice(0, 197)}\n\n${code}${en}`, 200).isBlocked).toBe(false)
  })

  it('is not held back by a guard that observes, which records it', () => {
    const { guards, filter } = filters({ mode: 'observe' })
    expect(send(de.repeat(4), 20, filter(false))).toEqual({ sent: de.repeat(4), held: 0, isBlocked: false })
    expect(guards.results).toEqual([{ name: 'g', on: 'output', outcome: 'would_block' }])
  })

  it('may have JSON in any language', () => {
    expect(send(JSON.stringify({ text: de.repeat(4) }), 20, filters().filter(true)).isBlocked).toBe(false)
  })
})
