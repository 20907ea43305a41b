// Pictures of the details, as large as the window; a click on them shows every pixel.

import { element } from './store.js';

const dialog = document.getElementById('large');
const place = document.getElementById('large-picture');

/** A button around `picture`, an image or a canvas, that enlarges it. */
export function enlarging(picture, caption) {
  return element('button', { class: 'enlarges', 'aria-label': `Enlarge: ${caption}`, onclick: open }, picture);

  function open() {
    place.replaceChildren(copyOf(picture));
    document.getElementById('large-caption').textContent = caption;
    dialog.classList.remove('whole');
    dialog.showModal();
  }
}

function copyOf(picture) {
  if (picture.tagName === 'IMG') return element('img', { src: picture.src, alt: picture.alt });
  const copy = element('canvas', { width: picture.width, height: picture.height });
  copy.getContext('2d').drawImage(picture, 0, 0);
  return copy;
}

export function begin() {
  place.addEventListener('click', () => dialog.classList.toggle('whole'));
  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
}
