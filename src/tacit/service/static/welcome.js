// Fills the code of a one-time link into the form. The part after # never leaves the browser by itself.
"use strict";
(function () {
  var field = document.getElementById("f-code");
  var code = window.location.hash.slice(1);
  if (field && code) {
    field.value = code;
    window.history.replaceState(null, "", window.location.pathname);
  }
})();
