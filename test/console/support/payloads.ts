/** Texts that would run a script in a page which shows them as HTML; each sets `window.ran`. */
const RUN = 'window.ran=1'

const ELEMENTS = [
  `<script>${RUN}</script>`,
  `<img src=x onerror=${RUN}>`,
  `<svg onload=${RUN}>`,
  `<svg><script>${RUN}</script></svg>`,
  `<iframe srcdoc="<script>parent.${RUN}</script>"></iframe>`,
  `<body onload=${RUN}>`,
  `<details open ontoggle=${RUN}>`,
  `<input autofocus onfocus=${RUN}>`,
  `<video><source onerror=${RUN}></video>`,
  `<a href="javascript:${RUN}">a</a>`,
  `<style>@import 'javascript:${RUN}'</style>`,
  `<math><mi xlink:href="javascript:${RUN}">a</mi></math>`,
  `<object data="javascript:${RUN}"></object>`,
  `<marquee onstart=${RUN}>`,
  `<template><script>${RUN}</script></template>`,
]
const OUT_OF = ['', '">', "'>", '</textarea>']

/** 50 of them, each different. */
export const PAYLOADS: string[] = [
  ...OUT_OF.flatMap((out) => ELEMENTS.map((element) => out + element)),
  `javascript:${RUN}`,
  `" onmouseover="${RUN}`,
  '{{constructor.constructor("window.ran=1")()}}',
  '__proto__',
  'constructor',
].slice(-50)
